"""Where triggers capture, in place of the log: what is kept for whom, and what is refused (S0-03, S0-30, S4-124)."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from concord.databases import provisioning
from concord.databases.contract.last_entry import LastEntry
from concord.databases.postgresql.entries import from_triggers
from concord.databases.postgresql.replication import standing
from concord.databases.postgresql.replication.trigger_publisher import TriggerPublisher
from concord.databases.registry import dialect
from concord.messages.errors import (
    EntryRefused,
    HistoryLost,
    NotInitialized,
    PrivilegeMissing,
    StructureChanged,
    SubscriberInvalid,
)
from concord.transactional.upkeep import keep_up
from tests.conftest import MakeDatabase
from tests.given.bare_sites import installation
from tests.given.replicated_accounts import ACCOUNTS
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLIER, READER, Site

Make = Callable[..., Replicated]
KEPT = "SELECT relation::regclass::text, count(*) FROM concord.operation GROUP BY 1 ORDER BY 1"
ENTRIES = "SELECT count(*) FROM concord.entry"


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    made = replicated(ACCOUNTS, "public.account", "public.movement", capture="triggers", conversions="refuse")
    made.london.run("INSERT INTO account SELECT n, 'owner ' || n, 100 FROM generate_series(1, 10) n")
    made.initialize()
    return made


def limited(sites: Replicated, **settings: object) -> None:
    sites.settings = {"capture": "triggers", **settings}


def test_operations_of_each_kind_arrive_and_are_kept_no_longer(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-111, S4-125, S4-159; in many looks, in batches that are cut, by set and one by one."""
    limited(sites, conversions="refuse", set_based_from=9)
    monkeypatch.setattr(from_triggers, "AT_ONCE", 3)
    monkeypatch.setattr("concord.databases.postgresql.entries.from_log.OPERATIONS", 4)
    assert sites.london.value("SELECT count(*) FROM concord.operation") == 0, "the copy has them"
    sites.london.run(
        "UPDATE account SET owner = 'é', balance = 0.50",
        "INSERT INTO movement (account, amount, note) SELECT n, -1.50, E'a\\tb\\n\\\\N' FROM generate_series(1, 9) n",
        "UPDATE account SET id = id + 100 WHERE id IN (9, 10)",
        "DELETE FROM movement WHERE account = 4",
        "TRUNCATE movement",
        *(f"INSERT INTO movement (account) VALUES ({n})" for n in range(8)),
    )
    report = sites.run()
    assert (report.entries, report.operations, report.largest) == (13, 10 + 9 + 2 + 1 + 8 + 8, 10)
    assert sites.are_equal()
    assert (sites.london.rows(KEPT), sites.london.value(ENTRIES)) == ([], 0)
    assert (sites.run().entries, sites.run().level_to) == (0, report.level_to)


def test_an_entry_after_a_copy_and_up_to_the_level_is_another_history(sites: Replicated) -> None:
    publisher = TriggerPublisher(sites.job())
    with closing(publisher):
        publisher.inspect_published()
        copied = publisher.end_of_log().number
        sites.london.run("UPDATE account SET owner = 'new' WHERE id = 1")
        level, copy = publisher.end_of_log().number, LastEntry(copied, None)
        assert [publisher.has_entry(copy, copied, each) for each in (copied, level)] == [True, False]
        assert publisher.has_entry(LastEntry(level, None), copied, level), "the copy holds this entry"


def test_operations_are_kept_until_each_replication_of_their_table_has_passed_them(
    sites: Replicated, database: MakeDatabase
) -> None:
    """S0-30: one of two is paused; another table's operations do not wait for it."""
    capetown = sites.capetown
    nairobi = Site(
        "nairobi",
        capetown.host,
        capetown.port,
        database(site="capetown").name,
        capetown.superuser,
        capetown.password,
    )
    nairobi.run(*ACCOUNTS)
    [account, _] = sites.tables
    paused = replace(sites, capetown=nairobi, tables=(account,), name=f"{sites.name}b")
    own = paused.definition.model_copy(update={"subscriber": "nairobi"})
    provisioning.provision(
        [
            installation(sites.london, (), replications=(sites.definition, own)),
            installation(nairobi, (), replications=(own,)),
        ]
    )
    paused.run(initialize=True, replication=own)
    for n in range(3):
        sites.london.run(f"UPDATE account SET balance = {n}", f"INSERT INTO movement (account) VALUES ({n})")
        assert sites.run().entries == 2
    assert (sites.london.rows(KEPT), sites.london.value(ENTRIES)) == ([("account", 30)], 3)
    report = paused.run(replication=own)
    assert (report.entries, report.operations) == (3, 30)
    assert (sites.london.rows(KEPT), sites.london.value(ENTRIES)) == ([], 0)
    assert nairobi.rows("SELECT sum(balance) FROM account") == [(20,)]

    sites.london.run("UPDATE account SET balance = 7")
    assert sites.run().entries == 1
    provisioning.provision([installation(sites.london, (), replications=(sites.definition,))])
    assert (sites.london.rows(KEPT), sites.london.value(ENTRIES)) == ([], 0), "it left the configuration"
    nairobi.connection.close()


def test_a_history_that_is_not_whole_is_refused(sites: Replicated) -> None:
    """Of either site one that was restored; operations that are gone; tables that are others."""
    sites.london.run("UPDATE account SET balance = 1")
    sites.run()
    level, at = "UPDATE concord.replay SET level = level", "UPDATE concord.last_entry SET number = number"
    life = "UPDATE concord.site SET incarnation = incarnation"
    for site, done, undone, said in (
        (sites.capetown, f"{level} - 1", f"{level} + 1", "as after a restore of capetown"),
        (sites.london, f"{at} - 1", f"{at} + 1", "as after a restore of london"),
        (sites.london, f"{life} + 1", f"{life} - 1", "as after a restore of london"),
    ):
        site.run(done)
        with pytest.raises(HistoryLost, match=said):
            sites.run()
        site.run(undone)
    sites.london.run("DROP TABLE movement", ACCOUNTS[1])
    sites.provision()
    with pytest.raises(HistoryLost, match="has other tables than when it was initialized"):
        sites.run()
    sites.initialize(replace=True)
    sites.london.run("DELETE FROM concord.kept_operations", "UPDATE account SET balance = 2")
    with pytest.raises(HistoryLost, match="no operations are kept"):
        sites.run()
    sites.initialize(replace=True)
    assert sites.are_equal()


def test_operations_of_another_structure_are_never_read_by_the_new_one(sites: Replicated) -> None:
    """A record is kept by its columns' places: one dropped and one added would change places unseen."""
    sites.capetown.run("ALTER TABLE account ADD holder text")
    alter = "ALTER TABLE account DROP owner; ALTER TABLE account ADD holder text"
    sites.london.run("INSERT INTO account VALUES (11, 'before', 1)", alter)
    with pytest.raises(StructureChanged, match="has other columns than when its triggers were made"):
        sites.run()
    sites.provision()
    with pytest.raises(StructureChanged, match="initialize the replication again"):
        sites.run()
    sites.initialize(replace=True)
    sites.london.run("INSERT INTO account VALUES (12, 1, 'after')")
    assert sites.run().entries == 1
    assert sites.capetown.rows("SELECT holder FROM account WHERE id > 10 ORDER BY id") == [
        (None,),
        ("after",),
    ]


def test_a_structure_that_changes_while_operations_are_read_is_noticed(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = replicated(
        ("CREATE TABLE pair (id int PRIMARY KEY, a text, b text)",), "public.pair", capture="triggers"
    )
    sites.initialize()
    sites.london.run("INSERT INTO pair VALUES (1, 'a', 'b')")
    read = from_triggers.Operations._rows

    def altered(*args: object) -> object:
        for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
            sites.london.run(f"ALTER TABLE pair RENAME {old} TO {new}")
        return read(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(from_triggers.Operations, "_rows", altered)
    with pytest.raises(StructureChanged):
        sites.run()
    assert sites.capetown.rows("SELECT * FROM pair") == []


def test_users_triggers_that_write_the_row_again_do_so_after_its_first_operation(replicated: Make) -> None:
    sites = replicated(
        (
            "CREATE TABLE seat (id int PRIMARY KEY, said text, n int DEFAULT 0)",
            "CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE public.seat"
            " SET said = said || '!' WHERE id = NEW.id AND said NOT LIKE '%!'; RETURN NULL; END$$",
            "CREATE TRIGGER again AFTER INSERT OR UPDATE ON seat FOR EACH ROW EXECUTE FUNCTION again()",
        ),
        "public.seat",
        capture="triggers",
        conversions="refuse",
    )
    sites.initialize()
    sites.london.run("INSERT INTO seat VALUES (1, 'one')", "UPDATE seat SET said = 'two', id = 2")
    assert sites.run().operations == 4
    assert sites.are_equal()
    assert sites.capetown.rows("SELECT id, said FROM seat") == [(2, "two!")]


def test_a_row_that_its_statements_trigger_writes_out_of_turn_is_refused(sites: Replicated) -> None:
    """Its operations are kept in the wrong order, and would end in another row. A row of another statement is well."""
    sites.london.run(
        "CREATE FUNCTION one() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE public.account SET balance = 0"
        " WHERE id <> NEW.id AND balance = NEW.balance; RETURN NULL; END$$",
        "CREATE TRIGGER one AFTER UPDATE ON account FOR EACH ROW WHEN (NEW.balance <> 0) EXECUTE FUNCTION one()",
        "BEGIN; UPDATE account SET balance = 5 WHERE id = 1; UPDATE account SET balance = 5 WHERE id = 2; COMMIT",
        "BEGIN; UPDATE account SET balance = 7 WHERE id = 2",
        "UPDATE account SET balance = 7, id = 20 WHERE id = 1; COMMIT",
    )
    assert (sites.run().operations, sites.are_equal()) == (6, True)
    sites.london.run("UPDATE account SET balance = 6 WHERE id IN (2, 20)")
    with pytest.raises(EntryRefused, match=r"entry \d+ .*of public\.account again"):
        sites.run()
    sites.initialize(replace=True)
    assert sites.are_equal()


def test_beyond_max_delta_nothing_is_kept_until_it_is_initialized_again(sites: Replicated) -> None:
    """S4-124: by bytes and by age; later operations are deleted by the upkeep, for users go on."""
    for limits in ({"bytes": 500}, {"age": 0}):
        sites.london.run("UPDATE account SET balance = balance + 1")
        limited(sites, max_delta=limits)
        with pytest.raises(SubscriberInvalid, match="more than max_delta"):
            sites.run()
        sites.london.run("UPDATE account SET balance = balance + 1")
        with pytest.raises(SubscriberInvalid):
            keep_up(sites.job(), dialect)
        assert (sites.london.rows(KEPT), sites.london.value(ENTRIES)) == ([], 0)
        limited(sites)
        sites.initialize(replace=True)
    assert sites.are_equal()
    assert keep_up(sites.job(), dialect) is True
    sites.london.run("UPDATE account SET balance = balance + 1")
    assert keep_up(sites.job(), dialect) is False
    log = standing.kept_log(sites.job(), sites.capetown.value("SELECT level FROM concord.replay"))
    assert log
    assert (log.waits, log.waiting_since is not None) == (True, True)
    assert (log.state, 640 < log.behind < 2000, (log.kept or 0) > 8000) == ("triggers", True, True)
    assert sites.run().entries == 1
    level = standing.level(sites.job())
    assert level
    assert level.largest == 10
    log = standing.kept_log(sites.job(), level.number)
    assert log
    assert (log.waits, log.waiting_since) == (False, None)


def test_a_replication_that_never_began_keeps_nothing(replicated: Make) -> None:
    sites = replicated(ACCOUNTS, "public.account", capture="triggers")
    sites.london.run("INSERT INTO account VALUES (1, 'one', 1)")
    with pytest.raises(NotInitialized):
        keep_up(sites.job(), dialect)
    assert sites.london.rows(KEPT) == []


def test_each_right_on_operations_is_needed_and_the_refusal_names_it(sites: Replicated) -> None:
    """S0-43: the reader reads, the applier numbers and deletes."""
    whole = {"operation": ("DELETE",), "entry": ("INSERT", "DELETE"), "last_entry": ("UPDATE",)}
    rights = [(APPLIER, table, right) for table, given in whole.items() for right in given]
    rights += [(APPLIER, "kept_operations", right) for right in ("INSERT", "UPDATE", "DELETE")]
    rights += [(READER, table, "SELECT") for table in ("operation", "entry")]
    for login, table, right in rights:
        sites.london.run(f"REVOKE {right} ON concord.{table} FROM {login}")
        with pytest.raises(PrivilegeMissing, match=table):
            sites.run()
        sites.london.run(f"GRANT {right} ON concord.{table} TO {login}")
    assert sites.run().entries == 0


@pytest.mark.parametrize("right", ["INSERT", "DELETE", "SELECT"])
def test_each_right_on_recorded_copies_is_needed_and_the_refusal_names_it(
    sites: Replicated, right: str
) -> None:
    sites.london.run(f"REVOKE {right} ON concord.recorded_copy FROM {APPLIER}")
    with pytest.raises(PrivilegeMissing, match="recorded_copy"):
        sites.initialize(replace=True)
    sites.london.run(f"GRANT {right} ON concord.recorded_copy TO {APPLIER}")
    sites.initialize(replace=True)
