"""Rows that users altered at the subscriber of a replication one way: counted with `compare`, a stop with `refuse`."""

from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concord.jobs.replication import Capture, Conversions
from concord.messages.errors import EntryRefused, StructureChanged
from tests.given.replicated_accounts import ACCOUNTS, Make, accounts
from tests.given.replicated_sites import Replicated
from tests.given.site import Site

Row = tuple[Any, ...]
ALTERED = "UPDATE account SET owner = 'theirs' WHERE id IN (1, 2, 3)"
ROWS = "SELECT id, owner, balance FROM account WHERE id <= 4 ORDER BY id"
CAPTURES = pytest.mark.parametrize("capture", list(Capture))


def skipping(sites: Replicated, *numbers: str) -> None:
    sites.settings = {**(sites.settings or {}), "skip": numbers}


@CAPTURES
def test_compare_counts_altered_rows_and_brings_them_to_the_publishers(
    replicated: Make, capture: Capture
) -> None:
    """S0-48: by an update, by a delete, by a change of the key. A row that is not altered is not counted."""
    sites = accounts(replicated, conversions=Conversions.COMPARE, capture=capture)
    sites.capetown.run(ALTERED)
    sites.london.run(
        "UPDATE account SET balance = 1 WHERE id IN (1, 4)",
        "DELETE FROM account WHERE id = 2",
        "UPDATE account SET id = 30 WHERE id = 3",
    )
    report = sites.run()
    [account, _] = report.tables
    assert (account.altered, account.updated, account.deleted, report.conversions) == (3, 1, 0, 3)
    assert account.adds_up
    assert sites.are_equal()
    assert sites.capetown.value("SELECT conversions FROM concord.replay") == 3


@CAPTURES
@pytest.mark.parametrize(
    "operation", ["UPDATE account SET balance = 1 WHERE id = 1", "DELETE FROM account WHERE id = 1"]
)
def test_refuse_stops_at_an_altered_row_and_leaves_it_as_it_is(
    replicated: Make, capture: Capture, operation: str
) -> None:
    """S0-48, S4-136: nothing of the entry stands. Once a person has undone the alteration, it is replayed."""
    sites = accounts(replicated, conversions=Conversions.REFUSE, capture=capture)
    sites.capetown.run(ALTERED)
    sites.london.run(
        "UPDATE account SET balance = 4 WHERE id = 4",
        f"DO $$BEGIN UPDATE account SET balance = 5 WHERE id = 5; {operation}; END$$",
    )
    with pytest.raises(
        EntryRefused, match=r"public\.account: .* of a row that was altered here \(error CNC09\)"
    ):
        sites.run()
    assert sites.capetown.rows("SELECT owner, balance FROM account WHERE id IN (1, 4, 5) ORDER BY id") == [
        ("theirs", 100),
        ("owner 4", 4),
        ("owner 5", 100),
    ]
    sites.capetown.run("UPDATE account SET owner = 'owner ' || id")
    sites.run()
    assert sites.are_equal()


def test_a_skipped_number_keeps_the_altered_row_and_the_operation(replicated: Make) -> None:
    """S2-21, S2-22."""
    sites = accounts(replicated, conversions=Conversions.REFUSE, skip=("CNC09",))
    sites.capetown.run(ALTERED)
    sites.london.run("UPDATE account SET balance = id WHERE id IN (1, 4)")
    report = sites.run()
    assert sites.capetown.rows(ROWS)[0] == (1, "theirs", 100)
    assert sites.capetown.rows(ROWS)[3] == (4, "owner 4", 4)
    assert (report.tables[0].quarantined, report.tables[0].updated) == (1, 1)
    [operations] = sites.capetown.rows("SELECT operations FROM concord.skipped")[0]
    assert [each["row"]["balance"] for each in operations] == [1]


@pytest.mark.parametrize("conversions", [Conversions.COMPARE, Conversions.REFUSE])
def test_a_row_that_has_the_updates_values_already_is_alike(
    replicated: Make, conversions: Conversions
) -> None:
    sites = accounts(replicated, conversions=conversions)
    for site in sites.sites:
        site.run("UPDATE account SET balance = 1 WHERE id = 1", "DELETE FROM account WHERE id = 1")
        site.run("UPDATE account SET balance = 2 WHERE id = 2")
    skipping(sites, "CNC06")
    report = sites.run()
    assert (report.tables[0].alike, report.tables[0].altered) == (1, 0)
    assert sites.are_equal()


@pytest.mark.parametrize("conversions", [Conversions.COMPARE, Conversions.REFUSE])
@pytest.mark.parametrize(
    "operation",
    [
        "UPDATE account SET balance = balance + 1",
        "DELETE FROM account",
        "UPDATE account SET id = id + 1000",
        "UPDATE account SET balance = 1; UPDATE account SET balance = 2",
    ],
)
def test_an_entry_that_is_replayed_by_set_sees_an_altered_row_as_the_loop_does(
    replicated: Make, conversions: Conversions, operation: str
) -> None:
    sites = replicated(ACCOUNTS, "public.account", set_based_from=20, conversions=conversions)
    sites.london.run("INSERT INTO account SELECT n, 'owner ' || n, 100 FROM generate_series(1, 50) n")
    sites.initialize()
    sites.capetown.run(ALTERED)
    sites.london.run(f"DO $$BEGIN {operation}; END$$")
    if conversions is Conversions.REFUSE:
        with pytest.raises(EntryRefused, match="CNC09"):
            sites.run()
        assert sites.capetown.rows(ROWS)[0] == (1, "theirs", 100)
    else:
        assert sites.run().conversions == 3
        assert sites.are_equal()


def test_an_identity_that_no_update_changes_is_compared_as_well(replicated: Make) -> None:
    sites = accounts(replicated, conversions=Conversions.COMPARE)
    sites.london.run("INSERT INTO movement (account, amount) VALUES (1, 1), (2, 2), (3, 3)")
    sites.run()
    sites.capetown.run("UPDATE movement SET note = 'mine' WHERE id = 1")
    sites.london.run(
        "UPDATE movement SET amount = 5 WHERE id <= 2",
        "UPDATE movement SET id = DEFAULT WHERE id = 1",
    )
    report = sites.run()
    assert (report.tables[1].altered, report.tables[1].updated) == (1, 2)
    assert sites.are_equal()


def test_operations_from_before_the_rows_were_published_whole_are_replayed_with_count(
    replicated: Make,
) -> None:
    """No row of theirs can be compared."""
    sites = accounts(replicated)
    sites.london.run("DELETE FROM account WHERE id = 1")
    sites.settings = {"conversions": Conversions.REFUSE}
    sites.provision()
    with pytest.raises(StructureChanged, match=r"Run the replication once with `conversions: count`"):
        sites.run()
    sites.settings = {"conversions": Conversions.COUNT}
    sites.run()
    sites.settings = {"conversions": Conversions.REFUSE}
    sites.london.run("DELETE FROM account WHERE id = 2")
    sites.run()
    assert sites.are_equal()


class Edit(NamedTuple):
    """A statement on one of a few accounts."""

    at_london: bool
    statement: str
    key: int
    other: int


EDITS = st.lists(
    st.builds(
        Edit,
        st.booleans(),
        st.sampled_from(
            (
                "UPDATE account SET balance = {value} WHERE id = {key}",
                "UPDATE account SET owner = '{value}' WHERE id = {key}",
                "DELETE FROM account WHERE id = {key}",
                "INSERT INTO account VALUES ({key}, '{value}', {value}) ON CONFLICT DO NOTHING",
                "UPDATE account SET id = {other} WHERE id = {key}"
                " AND NOT EXISTS (SELECT FROM account WHERE id = {other})",
            )
        ),
        st.integers(1, 4),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=12,
)
VALUES = count(1000)
BEGUN = {key: (key, "o", key) for key in range(1, 5)}
PROPERTY = settings(
    max_examples=20, deadline=None, report_multiple_bugs=False, suppress_health_check=[HealthCheck.too_slow]
)


def begin(sites: Replicated) -> None:
    """The same four accounts at both sites."""
    rows = ", ".join(map(str, BEGUN.values()))
    sites.london.run("TRUNCATE account", f"INSERT INTO account VALUES {rows}")
    sites.run()


def play(site: Site, edits: Sequence[Edit]) -> dict[int, Row]:
    """Each with a value that no other edit has. The accounts after them, by key."""
    for each in edits:
        site.run(each.statement.format(value=next(VALUES), key=each.key, other=each.other))
    return by_key(site)


def by_key(site: Site) -> dict[int, Row]:
    return {row[0]: row for row in site.rows("SELECT * FROM account")}


def changed(rows: dict[int, Row]) -> set[int]:
    """The keys whose rows are not those of the beginning."""
    return {key for key in BEGUN.keys() | rows.keys() if rows.get(key) != BEGUN.get(key)}


def test_no_row_that_users_altered_is_written_over_where_that_is_refused(replicated: Make) -> None:
    """Operations that do not meet the publisher's row are kept, and the rows stay the users'."""
    skip = ("CNC06", "CNC07", "CNC09", "23505")
    sites = accounts(replicated, conversions=Conversions.REFUSE, skip=skip)

    @PROPERTY
    @given(EDITS)
    def hold(edits: Sequence[Edit]) -> None:
        begin(sites)
        theirs = play(sites.capetown, [each for each in edits if not each.at_london])
        play(sites.london, [each for each in edits if each.at_london])
        sites.run()
        now = by_key(sites.capetown)
        assert {key: now.get(key) for key in changed(theirs) & theirs.keys()} == {
            key: theirs[key] for key in changed(theirs) & theirs.keys()
        }

    hold()


def test_a_row_that_users_altered_is_the_publishers_after_its_operation_and_counted(replicated: Make) -> None:
    sites = accounts(replicated, conversions=Conversions.COMPARE)

    @PROPERTY
    @given(EDITS)
    def hold(edits: Sequence[Edit]) -> None:
        begin(sites)
        theirs = play(sites.capetown, [each for each in edits if not each.at_london])
        ours = play(sites.london, [each for each in edits if each.at_london])
        met = changed(theirs) & changed(ours)
        report = sites.run()
        assert report.conversions > 0 or not met
        now = by_key(sites.capetown)
        assert {key: now.get(key) for key in met} == {key: ours.get(key) for key in met}

    hold()
