"""Conflicts that end in a new row: at both sites, with both losers in the log, whoever is faster."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from concord.errors import DecideAgain, ResolverFailed
from concord.row_version import RowVersion
from tests.conftest import PROJECT
from tests.link import ledger
from tests.link.conftest import MakePair
from tests.link.merging import STOCK, edit, merging
from tests.link.pair import At, Pair, Rows, Site, carried

pytestmark = pytest.mark.spark

DOCUMENT = (PROJECT / "docs" / "conflicts.md").read_text()
CUSTOM = "custom(tests.link.merging:{})"


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*STOCK)


def stock(pair: Pair, columns: str = "seats, price::text, title", where: str = "true") -> Rows:
    """The rows, the same at both sites."""
    assert pair.equal
    return pair.london.rows(f"SELECT id, {columns} FROM stock WHERE {where} ORDER BY id")


def losers(pair: Pair, key: int) -> dict[str, dict[str, str | None]]:
    """Of one row's conflict: who lost, with which row; checks what both entries have in common."""
    found = [each for each in pair.conflicts() if each["key"] == [str(key)]]
    for each in found:
        winner, loser = ledger.version(each["winner_version"]), ledger.version(each["loser_version"])
        assert winner.includes(loser)
        assert not loser.includes(winner)
        assert (winner.derived, each["winner_site"]) == (1, winner.site)
    assert len({str(each["winner_row"]) for each in found}) == 1
    return {each["loser_site"]: each["loser_row"] for each in found}


def test_both_sites_get_what_both_did_and_the_log_keeps_both_rows(sites: Pair) -> None:
    """S4-073: additive, columns of either site, the chain for what is left open, and nothing to do afterwards."""
    sites = merging(sites, "additive(seats)", "merge_columns")
    edit(sites, 1, "seats = seats - 3", "seats = seats + 10")
    edit(sites, 2, "title = 'london'", "price = 11.00, data = NULL")
    edit(sites, 3, "seats = 90, title = 'london'", "seats = 80, title = 'capetown'")
    edit(sites, 4, "seats = 2000000000", "seats = 2000000000")  # no integer holds the sum
    sites.london.run("DELETE FROM stock WHERE id = 5")
    sites.capetown.run("UPDATE stock SET seats = 7 WHERE id = 5")
    report = carried(sites.run("forward"))
    counts = report.model_dump(include={"acquired", "applied", "lost", "merged", "conflicts"})
    assert counts == {"acquired": 5, "applied": 3, "lost": 2, "merged": 3, "conflicts": 5}
    came_in = "SELECT base_row ->> 'seats' FROM concord.\"public.stock\" WHERE id = 1"
    assert sites.capetown.value(came_in) == "97"  # what London has
    reverse = carried(sites.run("reverse"))
    assert (reverse.acquired, reverse.applied, reverse.conflicts) == (5, 5, 0)
    assert stock(sites, where="id < 6") == [
        (1, 107, "10.00", "old"),
        (2, 100, "11.00", "london"),
        (3, 70, "10.00", "capetown"),
        (4, 2000000000, "10.00", "old"),
        (5, 7, "10.00", "old"),
    ]
    assert {site: row["seats"] for site, row in losers(sites, 1).items()} == {
        "london": "97",
        "capetown": "110",
    }
    assert {site: row["data"] for site, row in losers(sites, 2).items()} == {
        "london": "\\x00ff",
        "capetown": None,
    }
    (three, _) = [each for each in sites.conflicts() if each["key"] == ["3"]]
    assert three["winner_row"]["seats"] == "70"
    assert three["resolver"] == "additive(seats), merge_columns, latest_timestamp"
    assert three["reason"] == (
        "additive(seats): both changes of seats; merge_columns: each column from the site that changed it; both changed"
        " seats, title; latest_timestamp: changed_at differs"
    )
    assert len(sites.conflicts()) == 3 * 2 + 2
    assert [report.total("acquired") for report in sites.settle()] == [0, 0, 0, 0]


def test_the_document_tells_what_happens(sites: Pair) -> None:
    """The table in docs/conflicts.md, typed."""
    chain = re.search(r"resolvers: \[(additive.*)\]   #", DOCUMENT)
    line = r"^\| (before|London|Cape Town|both, afterwards) \| (.+?) \| (.+?) \| (.+?) \|$"
    told = re.findall(line, DOCUMENT, re.MULTILINE)
    rows = {who: dict(zip(("seats", "price", "title"), cells, strict=True)) for who, *cells in told}
    assert chain
    sites = merging(sites, *chain[1].split(", "))
    before = rows["before"]
    changes = [
        ", ".join(f"{name} = '{value}'" for name, value in rows[who].items() if value != before[name])
        for who in ("London", "Cape Town")
    ]
    edit(sites, 1, *changes)
    sites.settle()
    after = rows["both, afterwards"]
    assert stock(sites, "seats::text, price::text, title", "id = 1") == [(1, *after.values())]


def test_an_average_needs_no_common_version(sites: Pair) -> None:
    sites = merging(sites, "average(price)")
    sites.london.run("INSERT INTO stock VALUES (50, 1, 1.00, 'london')")
    sites.capetown.run("INSERT INTO stock VALUES (50, 2, 2.01, 'capetown')")
    edit(sites, 1, "price = 1", "price = 2")
    sites.settle()
    assert stock(sites, where="id IN (1, 50)") == [(1, 100, "1.50", "old"), (50, 2, "1.50", "capetown")]
    assert {each["type"] for each in sites.conflicts()} == {"insert_insert", "update_update"}


#: Steps at which users edit on: both sites' before the target's rows are locked, London's alone after that.
STEPS = [
    *(("forward", step) for step in ("count", "write", "commit")),
    *(("reverse", step) for step in ("snapshot", "stage")),
]


def test_no_seat_is_lost_to_edits_that_fall_into_a_run(sites: Pair) -> None:
    """Before the source is read and after it, before the target is locked and before its commit (F27)."""
    sites = merging(sites, "additive(seats)")
    sold = 0
    for direction, step in STEPS:
        edit(sites, 1, "seats = seats - 1", "seats = seats - 10")
        more = sites.sites[: 1 if step == "commit" else 2]

        def sell(more: Sequence[Site] = more) -> None:
            for site in more:
                site.run("UPDATE stock SET seats = seats - 100 WHERE id = 1")

        sites.run(direction, at=At(step, sell))
        sold += 11 + 100 * len(more)
    sites.settle()
    assert stock(sites, "seats", "id = 1") == [(1, 100 - sold)]
    assert "not known" not in str(sites.conflicts())
    assert not ledger_errors(sites)


def ledger_errors(pair: Pair) -> list[object]:
    """Pairs that stand there twice, and entries of which the loser had seen the winner."""
    seen: set[frozenset[object]] = set()
    wrong: list[object] = []
    for each in pair.conflicts():
        versions: list[RowVersion] = [ledger.version(each[f"{side}_version"]) for side in ("winner", "loser")]
        found = frozenset((str(each["key"]), version.dot) for version in versions)
        if found in seen or versions[1].includes(versions[0]):
            wrong.append(each)
        seen.add(found)
    return wrong


def test_a_plan_counts_a_merge_and_writes_nothing(sites: Pair) -> None:
    sites = merging(sites, "additive(seats)")
    edit(sites, 1, "seats = 1", "seats = 2")
    report = carried(sites.run("forward", plan_only=True))
    assert (report.acquired, report.applied, report.merged, report.conflicts) == (1, 1, 1, 1)
    assert sites.conflicts() == []


def test_a_function_chooses_merges_or_leaves_it_to_the_next(sites: Pair) -> None:
    """S4-048 to S4-053, S4-056"""
    sites = merging(sites, CUSTOM.format("by_title"), "earliest_timestamp")
    for key, title in enumerate(("source", "target", "undecided", "both"), start=1):
        edit(sites, key, f"title = '{title}', seats = 1", f"title = 'c{key}', seats = 2")
    sites.run("forward")
    sites.run("reverse")
    assert stock(sites, where="id < 5") == [
        (1, 1, "10.00", "source"),
        (2, 2, "10.00", "c2"),
        (3, 1, "10.00", "undecided"),
        (4, 1, "12.50", "both and c4"),
    ]
    assert {site: row["title"] for site, row in losers(sites, 4).items()} == {
        "london": "both",
        "capetown": "c4",
    }
    reasons = {each["key"][0]: (each["resolver"], each["reason"]) for each in sites.conflicts()}
    by_title = CUSTOM.format("by_title")
    assert reasons["1"] == (by_title, "took the source's row")
    assert reasons["3"] == ("earliest_timestamp", f"{by_title}: undecided; changed_at differs")
    assert reasons["4"] == (by_title, "made a new row")
    assert [report.total("acquired") for report in sites.settle()] == [0, 0, 0, 0]


def test_a_function_that_fails_stops_its_table_alone(sites: Pair) -> None:
    sites = merging(sites, CUSTOM.format("breaks"))
    edit(sites, 1, "seats = 1", "seats = 2")
    sites.london.run("UPDATE plain SET v = 'new'")
    report = sites.run("forward")
    assert report.stopped == {
        "public.stock": "public.stock: 1 conflicts have no decision: custom(tests.link.merging:breaks) failed:"
        " ArithmeticError: no idea of 1. Mend the function; nothing of the table was written"
    }
    assert sites.capetown.value("SELECT v FROM plain") == "new"
    assert sites.capetown.value("SELECT seats FROM stock WHERE id = 1") == 2
    assert sites.conflicts() == []


def test_a_function_that_is_not_there_stops_its_table_before_it_is_needed(sites: Pair) -> None:
    sites = merging(sites, CUSTOM.format("nobody_wrote_it"))
    sites.london.run("UPDATE stock SET seats = 1 WHERE id = 1")
    (stopped,) = sites.run("forward").stopped.values()
    assert stopped.startswith("public.stock: custom(tests.link.merging:nobody_wrote_it) cannot be imported: ")
    assert sites.capetown.value("SELECT seats FROM stock WHERE id = 1") == 100
    only = replace(sites, tables=tuple(table for table in sites.tables if table.policy.asks))
    with pytest.raises(ResolverFailed, match="Install it where the Spark driver and its executors run"):
        only.run("forward")


def test_a_row_that_was_edited_meanwhile_goes_back_to_the_function(sites: Pair) -> None:
    sites = merging(sites, CUSTOM.format("by_title"))
    edit(sites, 1, "title = 'both'", "title = 'one'")
    sites.run(
        "forward", at=At("write", lambda: sites.capetown.run("UPDATE stock SET title = 'two' WHERE id = 1"))
    )
    sites.run("reverse")
    assert stock(sites, "title", "id = 1") == [(1, "both and two")]
    assert {row["title"] for row in losers(sites, 1).values()} == {"both", "two"}


@dataclass
class EveryTime(At):
    """Acts whenever the link reaches the step."""

    def __call__(self, step: str) -> None:
        if step == self.step:
            self.reached += 1
            self.act()


def test_a_row_that_is_edited_all_the_while_ends_the_run_with_nothing_written(sites: Pair) -> None:
    sites = merging(sites, CUSTOM.format("by_title"))
    edit(sites, 1, "title = 'both'", "title = 'one'")
    touch = EveryTime("write", lambda: sites.capetown.run("UPDATE stock SET seats = seats + 1 WHERE id = 1"))
    with pytest.raises(
        DecideAgain, match=r"capetown: public\.stock: 1 rows were edited while they were decided"
    ):
        sites.run("forward", at=touch)
    assert sites.capetown.rows("SELECT title, seats FROM stock WHERE id = 1") == [("one", 103)]
    assert sites.conflicts() == []
