"""`concord.call` at a publisher: the arguments that it hands on exactly, and each reason for which it refuses."""

import psycopg
import pytest

from concord.databases.postgresql.calls import call_objects
from concord.databases.postgresql.calls.signature import problems
from concord.messages.errors import EntryRefused
from concord.values.identifier import parse_table_name
from tests.given.replication_steps import SteppedReplication
from tests.given.site import Rows


def carried_over(replication: SteppedReplication) -> Rows:
    """Cape Town's accounts after all was replayed."""
    ends = replication.open()
    ends.stage(*ends.read())
    ends.replay()
    return replication.sites.capetown.rows("SELECT id, owner FROM account ORDER BY id")


def test_a_call_runs_the_procedure_at_both_sites_and_leaves_no_mark(replication: SteppedReplication) -> None:
    london, capetown = replication.sites.sites
    capetown.run(f"ALTER DATABASE {capetown.database} SET here.mark = ' in Cape Town'")
    try:
        london.run("SELECT concord.call('public.opens', '1', 'Ann')")
        assert london.rows("SELECT id, owner FROM account") == [(1, "Ann")]
        assert carried_over(replication) == [(1, "Ann in Cape Town")], (
            "the procedure ran there, no row travelled"
        )
        assert london.value("SELECT count(*) FROM concord.call") == 0
    finally:
        capetown.run(f"ALTER DATABASE {capetown.database} RESET here.mark")


def test_rows_before_and_after_a_call_in_its_transaction_travel_as_rows(
    replication: SteppedReplication,
) -> None:
    replication.sites.london.run(
        "BEGIN; INSERT INTO account (id, owner) VALUES (1, 'before');"
        " SELECT concord.call('public.opens', '2', 'called');"
        " UPDATE account SET owner = owner || '!'; COMMIT"
    )
    assert carried_over(replication) == [(1, "before!"), (2, "called!")]


def test_two_calls_in_one_transaction_are_two_calls(replication: SteppedReplication) -> None:
    replication.sites.london.run(
        "BEGIN; SELECT concord.call('public.opens', '1', 'a'); SELECT concord.call('public.opens', '2', 'b'); COMMIT"
    )
    ends = replication.open()
    ends.stage(*ends.read())
    done = ends.replay()
    assert (done.entries, done.effects["calls"]) == (1, {"called": 2})


@pytest.mark.parametrize(
    "owner", ["NULL", "''", "' '", "'it''s'", r"'a\b'", "'%L; DROP TABLE account'", "'ä\n'"]
)
def test_a_text_argument_arrives_as_it_is(replication: SteppedReplication, owner: str) -> None:
    replication.sites.london.run(f"SELECT concord.call('public.opens', '1', {owner})")
    assert carried_over(replication) == replication.sites.london.rows("SELECT id, owner FROM account")


def test_values_are_read_by_the_caller_s_settings_and_handed_on_in_exact_texts(
    replication: SteppedReplication,
) -> None:
    replication.sites.london.run(
        "BEGIN; SET LOCAL DateStyle = 'SQL, DMY'; SET LOCAL extra_float_digits = -10; SET LOCAL bytea_output = escape;"
        r" SELECT concord.call('public.on_day', '02/03/2026', '0.1234567890123456', '\x00ff'); COMMIT"
    )
    assert carried_over(replication) == [(1, r"2026-03-02/0.1234567890123456/\x00ff")]


def test_a_session_that_takes_backslashes_for_escapes_calls_as_any_other(
    replication: SteppedReplication,
) -> None:
    replication.sites.london.run(
        "BEGIN; SET LOCAL standard_conforming_strings = off; SELECT concord.call('public.opens', '1', 'Ann'); COMMIT"
    )
    assert carried_over(replication) == [(1, "Ann")]


def test_a_name_that_needs_quotes_is_called_by_it(replication: SteppedReplication) -> None:
    replication.sites.london.run("""SELECT concord.call('public."Odd name"', 'x')""")
    assert carried_over(replication) == [(2, "x")]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("'public.alone', '1'", "no replication carries calls of public.alone"),
        (
            "'opens', '1', 'x'",
            "no replication carries calls of opens; name one of its `procedures` with its schema",
        ),
        ("'public.missing'", "the procedure public.missing does not exist"),
        ("'public.overloaded', '1'", "public.overloaded is one of several routines of that name"),
        ("'public.gives'", "public.gives has other parameters than IN"),
        ("'public.plain'", "public.plain is no procedure"),
        ("'public.takes_any', '1'", "public.takes_any has a parameter that takes any type"),
        ("'public.opens', '1'", "the procedure public.opens has 2 parameters, and 1 arguments were given"),
        ("'public.opens', '1', 'x', 'y'", "has 2 parameters, and 3 arguments were given"),
        ("'public.opens', 'one', 'x'", "invalid input syntax for type integer"),
        ("'public.commits'", "the procedure public.commits ends transactions"),
        ("'public.nests'", "a replicated call is under way; CALL public.opens in it as it is"),
        ("'public.fails'", "no funds"),
    ],
    ids=lambda value: value.split("'")[1] if value.startswith("'") else "",
)
def test_a_call_that_cannot_travel_is_refused_and_writes_nothing(
    replication: SteppedReplication, call: str, words: str
) -> None:
    """S4-126: another procedure, a wrong number of arguments, a commit, a call in a call."""
    with pytest.raises(psycopg.Error) as raised:
        replication.sites.london.run(f"SELECT concord.call({call})")
    assert words in str(raised.value)
    assert replication.sites.london.rows("SELECT FROM account") == []
    ends = replication.open()
    ends.stage(*ends.read())
    assert ends.replay().entries == 0


@pytest.mark.parametrize(
    "forged",
    [
        "SELECT concord.mark_call('public.opens', ARRAY['1', 'forged'])",
        "SELECT concord.end_call('(0,1)')",
        "INSERT INTO concord.call (schema_name, name, types, arguments) VALUES ('public', 'opens', '[]', '[]')",
        "DO $$ BEGIN PERFORM concord.mark_call('public.opens', ARRAY['1', 'forged']); END $$",
    ],
    ids=["mark", "end", "row", "block"],
)
def test_no_user_writes_a_mark_but_by_a_call(replication: SteppedReplication, forged: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        replication.sites.london.as_application(forged)
    assert replication.sites.london.value("SELECT count(*) FROM concord.call") == 0


def test_a_user_with_rights_on_the_rows_alone_may_call(replication: SteppedReplication) -> None:
    replication.sites.london.as_application("SELECT concord.call('public.opens', '1', 'Ann')")
    assert carried_over(replication) == [(1, "Ann")]


def test_a_call_that_the_subscriber_s_own_procedure_refuses_stops_its_entry(
    replication: SteppedReplication,
) -> None:
    replication.sites.capetown.run("INSERT INTO account (id, owner) VALUES (1, 'mine')")
    replication.sites.london.run("SELECT concord.call('public.opens', '1', 'Ann')")
    ends = replication.open()
    ends.stage(*ends.read())
    with pytest.raises(EntryRefused, match=r'"account_pkey"'):
        ends.replay()
    assert replication.accounts() == [(1, "mine")]


def test_each_procedure_that_cannot_be_called_is_a_problem_of_its_own_line(
    replication: SteppedReplication,
) -> None:
    names = ("opens", "missing", "overloaded", "gives", "plain", "takes_any")
    london = replication.sites.london.connection
    found = list(problems(london, [parse_table_name(f"public.{name}") for name in names]))
    assert [line.split()[2] for line in found] == [f"public.{name}" for name in names[1:]]


def test_a_function_that_carries_other_procedures_is_a_deviation(replication: SteppedReplication) -> None:
    london, procedures = replication.sites.london.connection, replication.sites.definition.procedures
    assert list(call_objects.deviations(london, procedures)) == []
    assert len(list(call_objects.deviations(london, procedures[1:]))) == 1
    assert list(call_objects.deviations(london, ())) == []
