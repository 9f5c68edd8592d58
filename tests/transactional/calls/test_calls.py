"""A call travels as one operation, and both sites do its work (S2-12, S4-126, S4-141)."""

from typing import Any

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.registry import dialect
from concord.values.identifier import parse_table_name
from tests.given.replicated_accounts import Make
from tests.given.replicated_calls import let_an_application_call, with_calls
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLIER

CALL = "SELECT concord.call('public.close_month', '2026-11-30', '2.50')"


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return with_calls(replicated)


def commits(user: psycopg.Connection[Any]) -> bool:
    """Else it has to be tried again."""
    try:
        user.commit()
    except psycopg.errors.SerializationFailure:
        return False
    return True


def test_serializable_transactions_that_touch_nothing_in_common_call_at_once(sites: Replicated) -> None:
    """S4-178: marks make no conflict between them, which users would have to answer by another try."""
    london = sites.london
    london.run("CREATE OR REPLACE PROCEDURE close_month(month date, fee numeric) LANGUAGE sql AS ''")
    with (
        london.log_in(london.superuser, autocommit=False) as first,
        london.log_in(london.superuser, autocommit=False) as second,
    ):
        for user in (first, second):
            user.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            user.execute(CALL.encode())
        assert [commits(user) for user in (first, second)] == [True, True]
    assert sites.run().entries == 2


def test_a_call_is_one_operation_and_both_sites_do_its_work(sites: Replicated) -> None:
    """S2-12, S4-126, S4-141: its rows stay at home, those before and after it travel, and all is one transaction."""
    let_an_application_call(sites.london)
    sites.london.as_application(
        "UPDATE account SET owner = 'before' WHERE id = 1",
        CALL,
        "UPDATE account SET owner = 'after' WHERE id = 2",
    )
    report = sites.run()
    assert (report.entries, report.operations, report.conversions) == (1, 3, 0)
    assert [(each.table, each.called) for each in report.tables][-1] == ("calls", 1)
    assert report.tables[0].updated == 2
    assert sites.are_equal()
    assert sites.capetown.value("SELECT count(*) FROM movement WHERE note = 'fee of 2026-11-30'") == 10
    assert sites.capetown.value("SELECT count(DISTINCT xmin::text) FROM movement") == 1
    assert sites.london.value("SELECT count(*) FROM concord.call") == 0
    assert sites.run().entries == 0
    assert provisioning.check(sites.installations()) == []


def test_a_mass_update_by_a_call_is_one_operation_on_the_way(sites: Replicated) -> None:
    """S2-12: 20,000 rows, and a batch that has none of them."""
    for site in sites.sites:
        site.run(
            "CREATE PROCEDURE fill() LANGUAGE sql AS $$INSERT INTO account SELECT n, 'new', 1"
            " FROM generate_series(11, 20010) n$$",
            "CREATE OR REPLACE PROCEDURE close_month(month date, fee numeric) LANGUAGE plpgsql AS"
            " $$BEGIN CALL fill(); UPDATE account SET balance = balance - fee; END$$",
        )
    sites.london.run(CALL)
    report = sites.run()
    assert (report.entries, report.operations, report.largest) == (1, 1, 1)
    assert sites.are_equal()


def test_a_large_transaction_with_a_call_is_replayed_one_by_one(sites: Replicated) -> None:
    """Sets know rows alone: the call stands in its place among them."""
    sites.london.run(
        "DO $$BEGIN INSERT INTO account SELECT n, 'new', 1 FROM generate_series(11, 400) n;"
        f" PERFORM {CALL.removeprefix('SELECT ')};"
        " INSERT INTO account SELECT n, 'new', 1 FROM generate_series(401, 800) n; END$$"
    )
    report = sites.run()
    assert (report.operations, report.tables[-1].called) == (791, 1)
    assert sites.are_equal()


def test_another_replication_of_the_same_tables_carries_the_rows(sites: Replicated) -> None:
    """Its publication is the same one, and its procedures are others."""
    sites.london.run(CALL)
    assert sites.settings is not None
    for site in sites.sites:
        site.run("CREATE PROCEDURE another() LANGUAGE sql AS ''")
    sites.settings["procedures"] = (parse_table_name("public.another"),)
    report = sites.run()
    assert (report.operations, report.tables[-1].called) == (20, 0)
    assert sites.are_equal()


def test_a_call_of_which_a_savepoint_was_rolled_back_never_leaves(sites: Replicated) -> None:
    """S4-141: it is bound to its transaction."""
    with sites.london.log_in(sites.london.superuser, autocommit=False) as user:
        user.execute(f"SAVEPOINT s; {CALL}; ROLLBACK TO SAVEPOINT s; UPDATE account SET balance = 1")
    report = sites.run()
    assert (report.entries, report.operations) == (1, 10)
    assert sites.capetown.value("SELECT count(*) FROM movement") == 0
    assert sites.are_equal()


def test_the_subscriber_may_have_another_procedure_of_that_name(sites: Replicated) -> None:
    """S4-132: a definition does not travel. A warehouse keeps the sums alone, and its own triggers see to the rest."""
    sites.capetown.run(
        "CREATE TABLE closed (month date, fees numeric, noted boolean DEFAULT false)",
        f"GRANT SELECT, INSERT ON closed TO {APPLIER}",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.noted := true; RETURN NEW; END$$",
        "CREATE TRIGGER note BEFORE INSERT ON closed FOR EACH ROW EXECUTE FUNCTION note()",
        "CREATE OR REPLACE PROCEDURE close_month(month date, fee numeric) LANGUAGE sql AS"
        " $$INSERT INTO public.closed SELECT month, sum(fee) FROM public.account$$",
    )
    sites.london.run(CALL)
    assert sites.run().operations == 1
    assert sites.capetown.rows("SELECT fees, noted FROM closed") == [(25, True)]
    assert sites.capetown.value("SELECT count(*) FROM movement") == 0
    sites.capetown.run(
        "CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'fired'; END$$"
    )
    sites.capetown.run(
        "CREATE TRIGGER loud BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION loud()",
    )
    sites.london.run(
        f"DO $$BEGIN PERFORM {CALL.removeprefix('SELECT ')}; UPDATE account SET owner = 'x'; END$$"
    )
    assert sites.run().operations == 11, "rows after a call are replayed in silence again"


def test_arguments_arrive_as_their_types_have_them_whatever_the_caller_set(replicated: Make) -> None:
    """S4-132: as text, exact; a name, a quote and a NULL are no trouble."""
    sites = with_calls(
        replicated,
        'public."keep ""$$it"',
        "CREATE TABLE kept (a date, b float8, c interval, d bytea, e text[], f char(3), g timestamptz, h jsonb)",
        'CREATE PROCEDURE "keep ""$$it"(date, float8, interval, bytea, text[], char(3), timestamptz, jsonb)'
        " LANGUAGE sql AS 'INSERT INTO kept VALUES ($1, $2, $3, $4, $5, $6, $7, $8)'",
    )
    sites.capetown.run(f"GRANT INSERT ON kept TO {APPLIER}")
    with sites.london.log_in(sites.london.superuser) as user:
        user.execute(
            "SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'sql_standard'; SET extra_float_digits = -10;"
            " SET TimeZone = 'Africa/Johannesburg'; SET bytea_output = 'escape'"
        )
        user.execute(
            """SELECT concord.call('public."keep ""$$it"', '03/02/2026', '0.1234567890123456', '1-2', E'\\\\x00ff',
               '{"it''s", NULL}', NULL, '03/02/2026 01:00', '{"a": "\\\\"}')"""
        )
    assert sites.run().operations == 1
    [(one,), (other,)] = [site.rows("SELECT k::text FROM kept k") for site in sites.sites]
    assert one == other
    assert sites.capetown.value("SELECT g FROM kept").isoformat()[:10] == "2026-02-02"


def test_a_watched_log_has_a_call_that_changes_no_published_table(sites: Replicated) -> None:
    for site in sites.sites:
        site.run(
            "CREATE OR REPLACE PROCEDURE close_month(month date, fee numeric) LANGUAGE sql AS 'SELECT 1'"
        )
    job = sites.job()
    level = dialect("postgresql").replications.level(job)
    assert level is not None
    kept = dialect("postgresql").replications.kept_log
    assert not kept(job, level.number).waits  # type: ignore[union-attr]
    sites.london.run(CALL)
    assert kept(job, level.number).waits  # type: ignore[union-attr]
    assert sites.run().operations == 1


def test_the_sample_of_five_calls_and_a_redefinition_has_128_rows(replicated: Make) -> None:
    """S4-169: t_proc called five times makes five rows of two characters, and once redefined 123 more.

    The sample's level counts the redefinition, which is its seventh entry; ours does not travel, so six are replayed.
    """
    once = "CREATE PROCEDURE t_proc(note text) LANGUAGE sql AS 'INSERT INTO movement (note) VALUES (note)'"
    sites = with_calls(replicated, "public.t_proc", once)
    for _ in range(5):
        sites.london.run("SELECT concord.call('public.t_proc', 'ab')")
    assert sites.run().entries == 5
    assert sites.capetown.value("SELECT count(*) FROM movement WHERE length(note) = 2") == 5
    for site in sites.sites:
        site.run(
            "CREATE OR REPLACE PROCEDURE t_proc(note text) LANGUAGE sql AS"
            " 'INSERT INTO movement (note) SELECT note FROM generate_series(1, 123)'"
        )
    sites.london.run("SELECT concord.call('public.t_proc', 'ab')")
    report = sites.run()
    assert (report.entries, report.operations) == (1, 1)
    assert sites.capetown.value("SELECT entries FROM concord.replay") == 6
    assert sites.capetown.value("SELECT count(*) FROM movement") == 128
    assert sites.are_equal()


def test_without_procedures_provision_takes_the_calls_away_and_rows_travel(sites: Replicated) -> None:
    """Of a call that waits in the log the rows arrive: they are always there, and the marks alone are passed over."""
    sites.london.run(CALL)
    sites.settings = {}
    sites.provision()
    assert sites.london.value(
        "SELECT to_regclass('concord.call') IS NULL AND to_regproc('concord.call') IS NULL"
    )
    report = sites.run()
    assert (report.entries, report.operations) == (1, 20)
    assert sites.are_equal()
    assert provisioning.check(sites.installations()) == []
