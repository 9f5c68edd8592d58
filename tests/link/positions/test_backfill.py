"""A backfill synchronizes the versions of an interval again, both ways, and moves no position (rules 1, 2).

It also puts back what was lost or altered behind the back of capture, as far as the versions say what it was.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.values.interval import Interval
from embedded.postgres import Server
from tests.conftest import PROJECT, Database
from tests.given.behind_capture import behind_the_back
from tests.given.filtered_pair import filtered
from tests.given.fixtures import MakeNetwork, MakePair, site_on
from tests.given.many_sites import chain
from tests.given.mapped_pair import begin_mapped, configured
from tests.given.site import Site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

FLIGHTS = (
    "CREATE TABLE flight (id int PRIMARY KEY, delay int, note text)",
    "INSERT INTO flight SELECT n, 0, 'as loaded' FROM generate_series(1, 40) n",
)
DOCUMENT = PROJECT / "docs" / "backfill.md"
EVER = Interval(start=0, end=2**62)
SHADOW = 'concord."public.flight"'
MAPPED = """
- table: public.flight
  at: {capetown: public.vlug}
  mappings:
    capetown:
      rename: {id: nommer}
      combine: {teken: {columns: [carrier, number], separator: " "}}
"""
STATE = "SELECT link, history, initialized, floor FROM concord.link_state ORDER BY link"
ROWS = "SELECT * FROM flight ORDER BY id"


def backfill(sites: Pair, interval: Interval = EVER, **changed: object) -> list[Any]:
    """Both links, as one run of the DAG."""
    return [sites.run(direction, interval=interval, **changed) for direction in ("forward", "reverse")]


def stamped(site: Site, identifier: int, changed_at: int) -> None:
    """Give a row's newest version another time, vector included."""
    site.run(
        f"UPDATE {SHADOW} SET changed_at = {changed_at}, vector = jsonb_build_object(origin,"
        f" jsonb_build_array({changed_at}, 0)) WHERE id = {identifier}"
    )


@pytest.fixture
def edited(pair: MakePair) -> Pair:
    """Rows 1 to 10 changed in London, 11 to 20 in Cape Town, 21 deleted, all of it synchronized."""
    sites = pair(*FLIGHTS)
    sites.london.run("UPDATE flight SET delay = 1 WHERE id <= 10", "DELETE FROM flight WHERE id = 21")
    sites.capetown.run("UPDATE flight SET delay = 2 WHERE id BETWEEN 11 AND 20")
    sites.settle()
    assert sites.equal
    return sites


def test_versions_of_the_interval_travel_and_no_others_to_the_microsecond(pair: MakePair) -> None:
    sites = pair(*FLIGHTS)
    sites.london.run("UPDATE flight SET delay = id WHERE id <= 4")
    for identifier, changed_at in ((1, 999), (2, 1_000), (3, 1_999), (4, 2_000)):
        stamped(sites.london, identifier, changed_at)

    report = sites.run(interval=Interval(start=1_000, end=2_000))

    assert (carried(report).acquired, carried(report).applied) == (2, 2)
    assert sites.capetown.rows("SELECT id FROM flight WHERE delay <> 0 ORDER BY id") == [(2,), (3,)]


def test_a_backfill_moves_no_position_and_the_next_run_goes_on_as_if_it_had_not_been(edited: Pair) -> None:
    # rule 1
    edited.london.run("UPDATE flight SET delay = 7 WHERE id = 30")
    before = [site.rows(STATE) for site in edited.sites]

    forward, reverse = backfill(edited)

    assert [site.rows(STATE) for site in edited.sites] == before
    # rule 2: nothing is excluded, whoever sent it; row 30 came with it
    assert [carried(forward).acquired, carried(reverse).acquired] == [22, 22]
    assert edited.equal
    again = edited.run()
    assert (carried(again).acquired, carried(again).converged) == (1, 1)


def test_a_repeated_backfill_writes_nothing_but_its_epoch(edited: Pair) -> None:
    backfill(edited)
    before = [site.writes() for site in edited.sites]

    reports = backfill(edited)

    assert [carried(report).converged for report in reports] == [21, 21]
    for site, earlier in zip(edited.sites, before, strict=True):
        written = {table: count - earlier[table] for table, count in site.writes().items()}
        assert {table for table, count in written.items() if count} == {"concord.synchronization"}


@pytest.mark.usefixtures("judged")
def test_rows_that_a_site_lost_without_a_trace_are_put_back_and_logged(edited: Pair) -> None:
    expected = edited.london.rows(ROWS)
    behind_the_back(edited.capetown, "DELETE FROM flight WHERE id IN (1, 2, 11)")
    assert edited.run().total("acquired") == 0

    forward, reverse = backfill(edited)

    assert edited.capetown.rows(ROWS) == expected
    # row 11 is Cape Town's own change, and yet London has the only copy
    assert (carried(forward).restored, carried(forward).applied, carried(reverse).applied) == (3, 3, 0)
    logged = edited.capetown.conflicts()
    assert [(row["key"], row["type"], row["resolver"], row["loser_row"]) for row in logged] == [
        ([key], "restored", "backfill", None) for key in ("1", "11", "2")
    ]
    assert {(row["winner_site"], row["loser_site"], row["reason"]) for row in logged} == {
        ("london", "capetown", "the row was missing under the same version")
    }
    assert logged[0]["winner_row"] == {"id": "1", "delay": "1", "note": "as loaded"}
    assert [report.total("acquired") for report in (edited.run(), edited.run("reverse"))] == [0, 0]


def test_what_a_site_lost_comes_back_from_the_other_and_never_takes_that_with_it(edited: Pair) -> None:
    """The site that lost its rows is the source of the first link: a loss without a version is not sent."""
    expected = edited.capetown.rows(ROWS)
    behind_the_back(edited.london, "DELETE FROM flight WHERE id IN (1, 2, 11)")

    forward, reverse = backfill(edited)

    assert (forward.total("acquired"), forward.total("applied")) == (18, 0)
    assert carried(reverse).restored == 3
    assert edited.london.rows(ROWS) == edited.capetown.rows(ROWS) == expected


def test_an_altered_row_is_put_back_from_the_origin_of_its_version_alone(edited: Pair) -> None:
    """Row 1 is London's own, row 11 Cape Town's: each is what its origin says, wherever it was altered."""
    behind_the_back(edited.capetown, "UPDATE flight SET note = 'altered' WHERE id IN (1, 11)")

    forward, reverse = backfill(edited)

    assert (carried(forward).restored, carried(reverse).restored) == (1, 1)
    for site in edited.sites:
        assert site.rows("SELECT id, note FROM flight WHERE id IN (1, 11) ORDER BY id") == [
            (1, "as loaded"), (11, "altered"),
        ]  # fmt: skip
    ((at_capetown,), (at_london,)) = edited.capetown.conflicts(), edited.london.conflicts()
    assert (at_capetown["key"], at_capetown["loser_row"]["note"]) == (["1"], "altered")
    assert (at_london["key"], at_london["loser_row"]["note"]) == (["11"], "as loaded")
    assert at_capetown["reason"] == "the row differed from that of its origin under the same version"


def test_a_row_lost_twice_is_logged_twice(edited: Pair) -> None:
    for _ in range(2):
        behind_the_back(edited.capetown, "DELETE FROM flight WHERE id = 1")
        backfill(edited)
    assert [row["key"] for row in edited.capetown.conflicts()] == [["1"], ["1"]]


def test_a_row_that_came_without_a_version_stays_where_it_is_and_is_not_sent(edited: Pair) -> None:
    """Under a tombstone or under no version at all: only a comparison can say what becomes of it."""
    behind_the_back(edited.capetown, "INSERT INTO flight VALUES (21, 9, 'back'), (99, 9, 'new')")

    reports = backfill(edited)

    assert [report.total("applied") for report in reports] == [0, 0]
    assert edited.capetown.value("SELECT count(*) FROM flight WHERE id IN (21, 99)") == 2
    assert edited.london.value("SELECT count(*) FROM flight WHERE id IN (21, 99)") == 0


def test_a_conflict_met_by_a_backfill_is_decided_and_logged_once(edited: Pair) -> None:
    edited.london.run("UPDATE flight SET note = 'london' WHERE id = 5")
    edited.capetown.run("UPDATE flight SET note = 'capetown' WHERE id = 5")

    forward, reverse = backfill(edited)
    edited.settle()

    assert (carried(forward).conflicts, reverse.total("conflicts")) == (1, 0)
    assert edited.equal
    assert edited.london.value("SELECT note FROM flight WHERE id = 5") == "capetown"
    assert [row["type"] for row in edited.conflicts()] == ["update_update"]


def test_an_agreed_tombstone_is_not_sent_again(edited: Pair) -> None:
    """Rule 10: the other site may have forgotten it, and its key may be in use again."""
    edited.london.run(f"UPDATE {SHADOW} SET agreed = true WHERE id = 21")
    edited.capetown.run(f"DELETE FROM {SHADOW} WHERE id = 21", "INSERT INTO flight VALUES (21, 0, 'new')")

    forward = edited.run(interval=EVER)

    assert carried(forward).acquired == 20
    assert edited.conflicts() == []


def test_a_plan_of_a_backfill_counts_what_it_would_put_back_and_writes_nothing(edited: Pair) -> None:
    behind_the_back(edited.capetown, "DELETE FROM flight WHERE id IN (1, 11)")
    before = edited.capetown.rows(ROWS)
    planned, _ = backfill(edited, plan_only=True)
    assert carried(planned).applied == 2
    assert edited.capetown.rows(ROWS) == before


def test_the_worked_example_of_the_documents_is_true(pair: MakePair) -> None:
    blocks = dict(re.findall(r"```(\w+ \w+(?: \w+)?)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL))
    sites = pair(*statements(blocks["sql london"]))
    sites.london.run(*statements(blocks["sql london edit"]))
    sites.capetown.run(*statements(blocks["sql capetown edit"]))
    sites.settle()
    behind_the_back(sites.capetown, *statements(blocks["sql capetown behind"]))
    assert [report.total("acquired") for report in (sites.run(), sites.run("reverse"))] == [0, 0]

    backfill(sites)

    expected = [tuple(line.strip().split(" | ")) for line in blocks["text both after"].splitlines()]
    for site in sites.sites:
        assert site.rows("SELECT id::text, delay::text, note FROM flight ORDER BY id") == expected
    logged = [[row["key"] for row in site.conflicts()] for site in sites.sites]
    assert logged == [[["3"]], [["1"], ["2"]]]


def statements(block: str) -> list[str]:
    return [statement for statement in block.split(";\n") if statement.strip()]


DAMAGE = st.lists(
    st.tuples(
        st.sampled_from(["london", "capetown"]),
        st.sampled_from(["DELETE FROM flight", "UPDATE flight SET note = 'altered'"]),
        st.integers(1, 20),
    ),
    max_size=8,
)


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=DAMAGE)
def test_after_a_backfill_of_everything_the_sites_are_equal_wherever_versioned_rows_were_damaged(
    edited: Pair, damage: list[tuple[str, str, int]]
) -> None:
    for name, statement, identifier in damage:
        site = edited.london if name == "london" else edited.capetown
        behind_the_back(site, f"{statement} WHERE id = {identifier}")
    reports = backfill(edited)
    assert edited.equal
    logged = len(edited.conflicts())
    assert logged >= sum(report.total("restored") for report in reports)
    assert [report.total("applied") for report in backfill(edited)] == [0, 0]
    assert len(edited.conflicts()) == logged
    # every example begins with all twenty rows, whole at both sites
    edited.london.run(
        "INSERT INTO flight SELECT n, 0, '' FROM generate_series(1, 20) n ON CONFLICT DO NOTHING"
    )
    edited.settle()


def test_under_a_row_filter_what_is_shared_comes_back_and_nothing_else_is_touched(pair: MakePair) -> None:
    """Rows of a site's own, rows that left, and their versions stay as they are (rule 9)."""
    sites = filtered(pair(*FLIGHTS), "delay <= 10")
    declare_equal(sites.job())
    sites.london.run(
        "UPDATE flight SET note = 'edited' WHERE id <= 6",
        "UPDATE flight SET delay = 99 WHERE id = 7",
        "INSERT INTO flight VALUES (100, 99, 'london')",
    )
    sites.capetown.run("INSERT INTO flight VALUES (200, 99, 'capetown'), (100, 99, 'capetown')")
    sites.settle()
    assert [sites.capetown.value(f"SELECT count(*) FROM flight WHERE id = {key}") for key in (7, 100)] == [
        0,
        1,
    ]
    behind_the_back(
        sites.capetown,
        "DELETE FROM flight WHERE id IN (1, 200)",
        "UPDATE flight SET note = 'altered' WHERE id IN (2, 100)",
        "UPDATE flight SET delay = 99 WHERE id = 3",
    )
    behind_the_back(
        sites.london, "UPDATE flight SET delay = 99 WHERE id = 4", "DELETE FROM flight WHERE id = 5"
    )

    reports = backfill(sites)

    shown = "SELECT id, delay, note FROM flight WHERE id < 8 OR id >= 100 ORDER BY id"
    others = [(1, 0, "edited"), (2, 0, "edited")]
    assert sites.london.rows(shown) == [
        *others, (3, 0, "edited"), (4, 99, "edited"), (5, 0, "edited"), (6, 0, "edited"),
        (7, 99, "as loaded"), (100, 99, "london"),
    ]  # fmt: skip
    assert sites.capetown.rows(shown) == [
        *others, (3, 99, "edited"), (4, 0, "edited"), (5, 0, "edited"), (6, 0, "edited"), (100, 99, "altered"),
    ]  # fmt: skip
    assert [report.total("restored") for report in reports] == [2, 1]
    assert sorted(row["key"][0] for row in sites.conflicts()) == ["1", "2", "5"]


def test_a_site_that_keeps_the_table_otherwise_gets_its_own_rows_back(
    server_with_logins: Server, database: Callable[[], Database], spark: SparkSession, tmp_path: Path
) -> None:
    """The rows are compared, and written, as each site keeps them; the log has each site's own images."""
    london, capetown = (site_on(server_with_logins, name, database().name) for name in ("london", "capetown"))
    london.run("CREATE TABLE flight (id int PRIMARY KEY, carrier text, number text)")
    capetown.run("CREATE TABLE vlug (nommer int PRIMARY KEY, teken text)")
    sites = begin_mapped(london, capetown, configured(MAPPED, tmp_path), lambda: spark)
    london.run("INSERT INTO flight VALUES (1, 'BA', '0059'), (2, 'BA', '0043'), (3, 'SA', '0222')")
    sites.settle()
    capetown.run("UPDATE vlug SET teken = 'SA 0234' WHERE nommer = 3")
    sites.settle()
    behind_the_back(
        capetown, "DELETE FROM vlug WHERE nommer = 1", "UPDATE vlug SET teken = 'XX 1' WHERE nommer = 2"
    )
    behind_the_back(london, "UPDATE flight SET number = '' WHERE id = 3")

    reports = backfill(sites)

    assert capetown.rows("TABLE vlug ORDER BY nommer") == [(1, "BA 0059"), (2, "BA 0043"), (3, "SA 0234")]
    assert london.rows("TABLE flight ORDER BY id")[2] == (3, "SA", "0234")
    assert [report.total("restored") for report in reports] == [2, 1]
    assert [(row["key"], row["loser_row"]) for row in capetown.conflicts()] == [
        (["1"], None),
        (["2"], {"nommer": "2", "teken": "XX 1"}),
    ]
    assert [report.total("applied") for report in backfill(sites)] == [0, 0]
    for site in sites.sites:
        site.connection.close()


def test_what_two_of_three_sites_have_lost_comes_back_on_its_way_from_the_third(network: MakeNetwork) -> None:
    """A missing row comes from whoever has it; a row that differs only from where its version was made."""
    chained = network(chain("oslo", "london", "capetown"), *FLIGHTS)
    chained["oslo"].run("UPDATE flight SET delay = 3 WHERE id <= 3")
    chained.settle()
    expected = chained["oslo"].rows(ROWS)
    behind_the_back(chained["london"], "DELETE FROM flight WHERE id IN (1, 2)")
    behind_the_back(
        chained["capetown"],
        "DELETE FROM flight WHERE id = 2",
        "UPDATE flight SET note = 'altered' WHERE id IN (1, 3)",
    )

    for one, other in chained.topology.pairs:
        for link in ((one, other), (other, one)):
            chained.run(*link, interval=EVER)

    assert chained["oslo"].rows(ROWS) == chained["london"].rows(ROWS) == expected
    altered = {key: note for key, _, note in chained["capetown"].rows(ROWS) if note == "altered"}
    assert altered == {1: "altered", 3: "altered"}, "neither end of that pair made the version"
    assert [len(chained[site].conflicts()) for site in chained.topology.sites] == [0, 2, 1]
    assert not any(report.total("applied") for report in chained.round())
    assert not any(report.total("acquired") for report in chained.round())


def test_children_that_are_put_back_fetch_a_parent_that_has_no_version(pair: MakePair) -> None:
    """Nobody deleted it: nothing cascades."""
    sites = pair(
        "CREATE TABLE book (id int PRIMARY KEY, price int)",
        "CREATE TABLE loan (id int PRIMARY KEY, book int REFERENCES book ON DELETE CASCADE)",
        "INSERT INTO book VALUES (1, 1)",
    )
    sites.london.run("INSERT INTO loan VALUES (1, 1)")
    sites.run()
    behind_the_back(sites.capetown, "DELETE FROM loan")
    behind_the_back(sites.capetown, "DELETE FROM book")
    backfill(sites)
    for site in sites.sites:
        assert (site.rows("TABLE book"), site.rows("TABLE loan")) == ([(1, 1)], [(1, 1)])
