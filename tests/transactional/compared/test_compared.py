"""A replication's two sites laid side by side: every difference is found, and nothing that is under way (T17)."""

from collections.abc import Callable
from time import monotonic, sleep

import pytest

from concord.comparison import replication
from concord.databases.postgresql.compare import queries
from concord.jobs.largest import Largest
from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import EntryRefused, NotInitialized, WriteContended
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.compared_replication import compare, replayed_beside, table, when
from tests.given.refused_entry import stopped_at
from tests.given.replicated_accounts import ACCOUNTS, Make, accounts
from tests.given.replicated_calls import with_calls
from tests.given.replicated_history import histories
from tests.given.replicated_sites import Replicated

SLOTS = (
    "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'concord_compare%'"
    " AND database = current_database()"
)
LOCKS = (
    "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE relname = 'kept_operations'"
)


def is_free(sites: Replicated) -> bool:
    """A server takes a moment to notice that a connection has ended."""
    until = monotonic() + 100
    while left := sites.london.value(SLOTS) + sites.london.value(LOCKS):
        if monotonic() > until:
            return False
        sleep(0.05)
    return left == 0


@pytest.fixture
def sites(capture: str, replicated: Make) -> Replicated:
    return accounts(replicated, capture=capture)


@pytest.fixture(params=["log", "triggers"])
def either(request: pytest.FixtureRequest, replicated: Make) -> Replicated:
    """For what each capture does by itself: `make test` runs both."""
    return accounts(replicated, capture=request.param)


def test_equal_sites_are_equal_and_what_waits_is_replayed_first(sites: Replicated) -> None:
    sites.london.run(
        "UPDATE account SET balance = 1 WHERE id <= 3", "INSERT INTO movement (amount) VALUES (1)"
    )
    report = compare(sites)
    assert (report.found, report.stopped, [each.table for each in report.tables]) == (
        0,
        {},
        ["public.account", "public.movement"],
    )
    found = table(report)
    assert (found.source_rows, found.target_rows, found.equal, found.in_flight) == (10, 10, 10, 0)


def test_each_kind_of_difference_is_found_with_both_rows(sites: Replicated) -> None:
    """S2-22, T17: Cape Town's rows were altered behind the replication's back."""
    sites.capetown.run(
        "UPDATE account SET balance = 7 WHERE id = 1",
        "DELETE FROM account WHERE id = 2",
        "INSERT INTO account VALUES (77, 'stranger', 0)",
    )
    report = compare(sites)
    found = table(report)
    assert (found.equal, found.differing, found.only_source, found.only_target, found.in_flight) == (
        8,
        1,
        1,
        1,
        0,
    )
    assert {each.key: (each.kind.value, each.source_row, each.target_row) for each in report.differences} == {
        ("1",): (
            "content",
            {"id": "1", "owner": "owner 1", "balance": "100"},
            {"id": "1", "owner": "owner 1", "balance": "7"},
        ),
        ("2",): ("only_source", {"id": "2", "owner": "owner 2", "balance": "100"}, None),
        ("77",): ("only_target", None, {"id": "77", "owner": "stranger", "balance": "0"}),
    }
    assert table(compare(sites, tables=("public.movement",)), "public.movement").differences == 0


def test_what_one_of_both_cuts_alone_holds_is_in_flight(either: Replicated) -> None:
    """Committed after the publisher's cut and replayed before the subscriber's: operations of each kind, and a key."""

    meanwhile = replayed_beside(
        either,
        "UPDATE account SET balance = 3 WHERE id = 1",
        "DELETE FROM account WHERE id = 2",
        "INSERT INTO account VALUES (11, 'new', 1)",
        "UPDATE account SET id = 30 WHERE id = 3",
    )
    found = table(compare(either, when("target_cut", meanwhile)))
    assert (found.in_flight, found.differences) == (5, 0)
    assert not found.proves_equal
    found = table(compare(either))
    assert (found.in_flight, found.differences, found.equal) == (0, 0, 10)


def test_a_difference_is_told_from_what_came_meanwhile(sites: Replicated) -> None:
    """Both in one bucket: the row that was altered by hand, and the one that was replayed after the first cut."""
    sites.capetown.run("UPDATE account SET balance = 7 WHERE id = 4")
    meanwhile = replayed_beside(sites, "UPDATE account SET balance = 3 WHERE id = 1")
    report = compare(sites, when("target_cut", meanwhile))
    assert (table(report).in_flight, table(report).differing) == (1, 1)
    assert [each.key for each in report.differences] == [("4",)]


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_an_entry_that_a_run_would_hold_is_in_flight(replicated: Make, capture: str) -> None:
    """S0-47: a comparison replays nothing, so that no transaction is too large for it."""
    sites = accounts(replicated, capture=capture, largest_transaction=Largest(operations=3))
    held = "INSERT INTO movement (amount) SELECT n FROM generate_series(1, 5) n"
    assert compare(sites, when("target_cut", lambda: sites.london.run(held))).found == 0


def test_several_connections_read_one_cut(sites: Replicated, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-45: what is committed before the others join is in none of their cuts."""
    monkeypatch.setattr(queries, "ROWS_PER_QUESTION", 2)
    sites.capetown.run("DELETE FROM account WHERE id = 4", "ANALYZE account")
    sites.london.run("ANALYZE account")
    later = replayed_beside(sites, "UPDATE account SET balance = balance + 1 WHERE id <> 4")
    found = table(compare(sites, when("scan", later)))
    assert (found.source_rows, found.equal, found.only_source, found.in_flight) == (10, 9, 1, 0)


def test_keys_of_several_forms_are_one_key(replicated: Make) -> None:
    """F42: 1.0 is replayed as 1.00 between both cuts; padded and quoted keys likewise."""
    ddl = ('CREATE TABLE "Odd ""t" ("k y" numeric, c char(5), "v" text, PRIMARY KEY (c, "k y"))',)
    odd = replicated(ddl, ReplicatedTable(table=parse_table_name('public."Odd ""t"')))
    odd.london.run("""INSERT INTO "Odd ""t" VALUES (1.0, 'a', 'x'), (2, 'b"', 'y'), (3, E'\\\\', NULL)""")
    odd.initialize()

    def meanwhile() -> None:
        odd.london.run(
            """UPDATE "Odd ""t" SET "k y" = 1.00, v = 'z' WHERE c = 'a'""", """UPDATE "Odd ""t" SET v = 'w'"""
        )
        odd.run()

    [found] = compare(odd, when("target_cut", meanwhile)).tables
    assert (found.in_flight, found.differences, found.equal) == (3, 0, 0)
    assert compare(odd).found == 0


@pytest.mark.parametrize("capture", ["log"])
def test_a_table_that_is_emptied_meanwhile_is_left_out(sites: Replicated) -> None:
    """S0-15: none of its rows is known by a key. Where triggers capture, the entry is refused."""

    def meanwhile() -> None:
        sites.london.run("TRUNCATE account")
        sites.run()

    report = compare(sites, when("target_cut", meanwhile))
    assert [each.table for each in report.tables] == ["public.movement"]
    assert "was emptied" in report.stopped["public.account"]


def test_a_call_between_both_cuts_asks_for_another_comparison(replicated: Make) -> None:
    """S2-12: nobody knows which rows the procedure changes."""
    sites = with_calls(replicated)

    def meanwhile() -> None:
        sites.london.run("SELECT concord.call('public.close_month', '2026-01-31', '1')")
        sites.run()

    with pytest.raises(WriteContended, match="a procedure was called"):
        compare(sites, when("target_cut", meanwhile))
    assert compare(sites).found == 0


def test_more_keys_under_way_than_can_be_looked_at_end_the_comparison(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more than may be is told in words; as many as may be are looked at."""
    monkeypatch.setattr(replication, "MOST_VOLATILE", 3)

    def ids(*keys: int) -> str:
        return f"UPDATE account SET balance = balance + 1 WHERE id IN ({', '.join(map(str, keys))})"

    meanwhile = replayed_beside(sites, ids(1, 2), ids(2, 3))
    assert table(compare(sites, when("target_cut", meanwhile))).in_flight == 3
    meanwhile = replayed_beside(sites, ids(1, 2), ids(3, 4))
    with pytest.raises(WriteContended, match=r"more than 3 rows of public\.account changed"):
        compare(sites, when("target_cut", meanwhile))
    meanwhile = replayed_beside(sites, ids(1, 2), ids(3, 4))
    assert compare(sites, when("target_cut", meanwhile), tables=("public.movement",)).found == 0


def test_a_history_is_left_out_and_told_of(replicated: Make) -> None:
    """S0-49."""
    sites = histories(replicated)
    sites.initialize()
    report = compare(sites)
    assert (report.tables, list(report.stopped)) == ((), ["public.account"])


def skipped(sites: Replicated) -> int:
    """An entry that Cape Town refuses, and a person skips."""
    sites.capetown.run("ALTER TABLE account ADD CONSTRAINT rich CHECK (balance > 10)")
    sites.london.run("UPDATE account SET balance = 5 WHERE id = 3")
    with pytest.raises(EntryRefused) as caught:
        sites.run()
    number = stopped_at(caught.value)
    sites.run(set_aside=SetAside(number=number, how=Aside.SKIP, reason="poor", by="ada"))
    sites.capetown.run("ALTER TABLE account DROP CONSTRAINT rich")
    return number


MENDED = "SELECT mended_at IS NOT NULL FROM concord.skipped"


def test_a_table_differs_until_a_comparison_finds_it_equal(sites: Replicated) -> None:
    """T17, S2-22, S4-136: skipped, found, mended by hand, and proven."""
    skipped(sites)
    assert table(compare(sites)).differing == 1
    assert sites.capetown.value(MENDED) is False
    sites.capetown.run("UPDATE account SET balance = 5 WHERE id = 3")
    compare(sites, tables=("public.movement",))
    assert sites.capetown.value(MENDED) is False, "that table was not looked at"
    assert compare(sites).found == 0
    assert sites.capetown.value(MENDED) is True


def test_rows_in_flight_prove_nothing_of_what_was_skipped(sites: Replicated) -> None:
    """T17: the row that was skipped is on its way once more."""
    skipped(sites)
    meanwhile = replayed_beside(sites, "UPDATE account SET owner = 'later' WHERE id = 3")
    found = table(compare(sites, when("target_cut", meanwhile)))
    assert (found.differences, found.in_flight) == (0, 1)
    assert sites.capetown.value(MENDED) is False


def test_an_entry_that_is_skipped_while_the_comparison_waits_is_not_proven(either: Replicated) -> None:
    """T17: it was committed after the publisher's cut, and passed before the subscriber's."""
    either.london.run("UPDATE account SET owner = 'waits' WHERE id = 9")

    def catch_up(reached: Callable[[], bool]) -> None:
        if not either.capetown.value("SELECT count(*) FROM concord.skipped"):
            skipped(either)
        while not reached():
            either.run()

    compare(either, catch_up=catch_up)
    assert not either.are_equal()
    assert either.capetown.value(MENDED) is False


def test_an_entry_that_is_skipped_after_the_cut_is_not_proven(sites: Replicated) -> None:
    """T17: the comparison has not seen what it would have changed."""
    found = compare(sites, when("scan", lambda: skipped(sites)))
    assert found.found == 0
    assert sites.capetown.value(MENDED) is False


def test_an_entry_that_cannot_be_replayed_ends_the_comparison(sites: Replicated) -> None:
    """S2-21: no copy that holds it could be laid beside the publisher's."""
    sites.capetown.run("ALTER TABLE account ADD CONSTRAINT rich CHECK (balance > 10)")
    sites.london.run("UPDATE account SET balance = 5 WHERE id = 3")
    with pytest.raises(EntryRefused, match="cannot be replayed"):
        compare(sites)
    assert is_free(sites)


def test_it_leaves_nothing_at_the_publisher(either: Replicated) -> None:
    """S4-124: neither a slot, nor a lock that runs would wait for, however it ends."""

    def fails() -> None:
        assert either.london.value(SLOTS) == (0 if either.definition.by_triggers else 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(either, when("target_cut", fails))
    compare(either)
    assert is_free(either)


def test_a_replication_that_never_began_is_not_compared(replicated: Callable[..., Replicated]) -> None:
    with pytest.raises(NotInitialized):
        compare(replicated(ACCOUNTS, "public.account"))
