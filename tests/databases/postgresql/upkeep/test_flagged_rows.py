"""Rows that the application has marked as deleted: tombstones, conflicts, and when they go."""

import time
from typing import Any

import pytest

from concord.databases.postgresql.upkeep import agreement
from concord.databases.postgresql.upkeep.cleanup import clean
from concord.jobs.upkeep import CarryingSite
from tests.given.fixtures import MakeShops
from tests.given.marked_sites import (
    SHADOW,
    Shops,
    quiet,
)
from tests.given.site import APPLIER
from tests.given.two_sites import SYNCHRONIZATION

pytestmark = pytest.mark.spark


def test_a_flagged_row_is_a_tombstone_and_its_key_can_be_used_again(shops: MakeShops) -> None:
    """S1-24, T20."""
    both = shops()
    both.london.delete(1)
    both.pair.settle()
    assert both.capetown.row(1) == ("common", True)
    for site in both.pair.sites:
        assert site.rows(f"SELECT id FROM {SHADOW} WHERE deleted") == [(1,)]
    both.capetown.bring_back(1, "again")
    both.pair.settle()
    assert both.london.row(1) == ("again", False)
    for site in both.pair.sites:
        assert site.rows(f"SELECT id FROM {SHADOW} WHERE deleted") == []
    assert both.pair.conflicts() == []
    quiet(both)


def test_an_update_and_a_delete_conflict_both_ways_with_both_images(shops: MakeShops) -> None:
    both = shops()
    both.london.delete(1)
    both.capetown.update(1, "still needed")
    both.london.update(2, "needed too")
    both.capetown.delete(2)
    both.london.insert(11, "of london")
    both.capetown.insert(11, "of cape town")
    both.pair.settle()
    assert both.agree
    assert both.london.row(1) == ("still needed", False)
    assert both.london.row(2) == ("common", True)
    assert both.london.row(11) == ("of cape town", False)
    found = {
        row["key"][0]: (
            row["type"],
            row["winner_row"]["note"],
            row["loser_row"]["note"],
            row["loser_row"]["is_deleted"],
        )
        for row in both.pair.conflicts()
    }
    assert found == {
        "1": ("delete_update", "still needed", "common", "true"),
        "2": ("update_delete", "common", "needed too", "false"),
        "11": ("insert_insert", "of cape town", "of london", "false"),
    }
    quiet(both)


def test_a_flagged_row_goes_everywhere_when_every_link_has_passed_it(shops: MakeShops) -> None:
    """S1-38 to S1-41: its tombstone and the row itself, at both sites, and not a run earlier."""
    both = shops()
    both.london.delete(1)
    both.london.delete(2)
    assert removed(both) == [0, 0]
    both.pair.run("forward")
    assert removed(both) == [0, 0]
    assert both.capetown.row(1) == ("common", True)
    both.pair.run("reverse")
    both.capetown.bring_back(2, "again")
    assert removed(both) == [1, 1]
    assert both.london.row(1) is both.capetown.row(1) is None
    assert both.london.row(2) == ("common", True)
    both.pair.settle()
    assert both.agree
    assert both.london.row(2) == ("again", False)
    both.london.insert(1, "a new one")
    both.pair.settle()
    assert both.capetown.row(1) == ("a new one", False)
    assert both.pair.conflicts() == []
    quiet(both)


def test_a_flagged_row_that_another_refers_to_stays(shops: MakeShops) -> None:
    both = shops()
    both.capetown.site.run(
        "CREATE TABLE invoice (id int PRIMARY KEY, customer int REFERENCES customer)",
        f"GRANT SELECT ON invoice TO {APPLIER}",
        "INSERT INTO invoice VALUES (1, 1)",
    )
    both.london.delete(1)
    both.pair.settle()
    assert removed(both) == [0, 0]
    both.capetown.site.run("DELETE FROM invoice")
    assert removed(both) == [1, 1]


def test_a_flagged_row_that_was_edited_since_stays_until_every_site_has_the_edit(shops: MakeShops) -> None:
    both = shops()
    both.london.delete(1)
    both.pair.settle()
    both.london.update(1, "why it was deleted")
    assert removed(both) == [0, 0]
    assert both.london.row(1) == ("why it was deleted", True)
    both.pair.settle()
    assert both.capetown.row(1) == ("why it was deleted", True)
    assert removed(both) == [1, 1]


def test_a_flagged_row_that_is_brought_back_while_its_tombstone_goes_stays(
    shops: MakeShops, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is looked at once more under its lock."""
    both = shops()
    both.london.delete(1)
    both.pair.settle()

    def publish(*agreed: Any) -> Any:
        published = agreement.publish(*agreed)
        both.capetown.bring_back(1, "again")
        return published

    monkeypatch.setattr("concord.databases.postgresql.upkeep.cleanup.publish", publish)
    assert removed(both) == [1, 0]
    both.pair.settle()
    assert both.london.row(1) == both.capetown.row(1) == ("again", False)
    assert both.pair.conflicts() == []


def removed(both: Shops) -> list[int]:
    ends = zip(both.pair.sites, both.pair.sites[::-1], ("forward", "reverse"), strict=True)
    sites = [
        CarryingSite(
            site.access,
            {table.name: {f"{SYNCHRONIZATION}/{direction}": peer.name} for table in both.pair.tables},
            both.pair.tables,
        )
        for site, peer, direction in ends
    ]
    reports = clean(sites, dry_run=False, now_us=time.time_ns() // 1000, min_age_us=0).tables
    assert [report.problem for report in reports] == [None, None]
    return [report.removed for report in reports]
