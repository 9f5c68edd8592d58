"""Conflicts that end in a new row: at both sites, with both losers in the log, whoever is faster."""

import re
from collections.abc import Sequence

import pytest

from concord.versions.row_version import RowVersion
from tests.conftest import PROJECT
from tests.given import version_account
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import carry, settle
from tests.given.merging_pair import STOCK, edit, losers, merging, stock
from tests.given.site import Site
from tests.given.two_sites import Pair

DOCUMENT = (PROJECT / "docs" / "conflicts.md").read_text()


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*STOCK)


def test_both_sites_get_what_both_did_and_the_log_keeps_both_rows(sites: Pair) -> None:
    """S4-073: additive, columns of either site, the chain for what is left open, and nothing to do afterwards."""
    sites = merging(sites, "additive(seats)", "merge_columns")
    edit(sites, 1, "seats = seats - 3", "seats = seats + 10")
    edit(sites, 2, "title = 'london'", "price = 11.00, data = NULL")
    edit(sites, 3, "seats = 90, title = 'london'", "seats = 80, title = 'capetown'")
    edit(sites, 4, "seats = 2000000000", "seats = 2000000000")  # no integer holds the sum
    sites.london.run("DELETE FROM stock WHERE id = 5")
    sites.capetown.run("UPDATE stock SET seats = 7 WHERE id = 5")
    (report,) = carry(sites.job("forward")).values()
    counts = report.model_dump(include={"acquired", "applied", "lost", "merged", "conflicts"})
    assert counts == {"acquired": 5, "applied": 3, "lost": 2, "merged": 3, "conflicts": 5}
    came_in = "SELECT base_row ->> 'seats' FROM concord.\"public.stock\" WHERE id = 1"
    assert sites.capetown.value(came_in) == "97"  # what London has
    (reverse,) = carry(sites.job("reverse")).values()
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
    assert [carry(sites.job(direction)) for direction in ("forward", "reverse")] == [{}, {}]


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
    settle(sites)
    after = rows["both, afterwards"]
    assert stock(sites, "seats::text, price::text, title", "id = 1") == [(1, *after.values())]


def test_an_average_needs_no_common_version(sites: Pair) -> None:
    sites = merging(sites, "average(price)")
    sites.london.run("INSERT INTO stock VALUES (50, 1, 1.00, 'london')")
    sites.capetown.run("INSERT INTO stock VALUES (50, 2, 2.01, 'capetown')")
    edit(sites, 1, "price = 1", "price = 2")
    settle(sites)
    assert stock(sites, where="id IN (1, 50)") == [(1, 100, "1.50", "old"), (50, 2, "1.50", "capetown")]
    assert {each["type"] for each in sites.conflicts()} == {"insert_insert", "update_update"}


#: Where users edit on: both sites' before the target's rows are locked, London's alone after that.
STEPS = [
    (direction, step) for direction in ("forward", "reverse") for step in ("hold_fence", "lock", "commit")
]


def test_no_seat_is_lost_to_edits_that_fall_into_a_run(sites: Pair) -> None:
    """After the source was read, before the target is locked and before its commit (F27)."""
    sites = merging(sites, "additive(seats)")
    sold = 0
    for direction, step in STEPS * 2:
        edit(sites, 1, "seats = seats - 1", "seats = seats - 10")
        source = sites.sites[direction == "reverse"]
        more = [source] if step == "commit" else sites.sites

        def sell(more: Sequence[Site] = more) -> None:
            for site in more:
                site.run("UPDATE stock SET seats = seats - 100 WHERE id = 1")

        carry(sites.job(direction), At(step, sell))
        sold += 11 + 100 * len(more)
    settle(sites)
    assert stock(sites, "seats", "id = 1") == [(1, 100 - sold)]
    assert "not known" not in str(sites.conflicts())
    assert not ledger_errors(sites)


def ledger_errors(pair: Pair) -> list[object]:
    """Pairs that stand there twice, and entries of which the loser had seen the winner."""
    seen: set[frozenset[object]] = set()
    wrong: list[object] = []
    for each in pair.conflicts():
        versions: list[RowVersion] = [
            version_account.version(each[f"{side}_version"]) for side in ("winner", "loser")
        ]
        found = frozenset((str(each["key"]), version.dot) for version in versions)
        if found in seen or versions[1].includes(versions[0]):
            wrong.append(each)
        seen.add(found)
    return wrong
