"""Conflicts of all sites come together, each exactly once."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import StatementError

from concord.repository.conflicts import collect_conflicts
from concord.repository.models import Conflict
from concord.repository.status import ConflictCount, conflict_counts
from tests.repository.records import NOON, conflict


def test_a_collected_conflict_keeps_everything_the_site_knew(repository: Engine) -> None:
    row = conflict("c1")
    assert collect_conflicts(repository, [row]) == 1
    with repository.connect() as connection:
        (kept,) = connection.execute(select(Conflict.__table__)).mappings()
    never = dict.fromkeys(("overturned_at", "overturned_by", "overturned_version"))
    assert dict(kept) == {**row, **never}


def test_the_absent_row_of_a_delete_is_null_for_the_database(repository: Engine) -> None:
    collect_conflicts(repository, [conflict("c1", loser_row=None)])
    with repository.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM conflict WHERE loser_row IS NULL")) == 1


def test_a_conflict_that_comes_by_two_paths_is_collected_once(repository: Engine) -> None:
    # F26: the first one stays
    assert collect_conflicts(repository, [conflict("c1", site="capetown")]) == 1
    assert collect_conflicts(repository, [conflict("c1", site="oslo"), conflict("c2")]) == 1
    with repository.connect() as connection:
        sites = connection.execute(select(Conflict.id, Conflict.site).order_by(Conflict.id)).all()
    assert [tuple(row) for row in sites] == [("c1", "capetown"), ("c2", "capetown")]


def test_the_same_conflict_twice_in_one_delivery_counts_once(repository: Engine) -> None:
    assert collect_conflicts(repository, [conflict("c1"), conflict("c1")]) == 1


def test_nothing_to_collect_is_no_conflict(repository: Engine) -> None:
    assert collect_conflicts(repository, []) == 0


def test_thousands_of_conflicts_are_collected_in_one_go(repository: Engine) -> None:
    rows = [conflict(f"c{n}") for n in range(2_500)]
    assert collect_conflicts(repository, rows) == 2_500
    assert collect_conflicts(repository, [*rows, conflict("new")]) == 1


def test_a_conflict_that_cannot_be_kept_leaves_none_of_its_delivery(repository: Engine) -> None:
    naive = datetime(2026, 3, 1)  # noqa: DTZ001
    with pytest.raises(StatementError):
        collect_conflicts(repository, [conflict("c1"), conflict("c2", decided_at=naive)])
    assert conflict_counts(repository) == []


def test_conflicts_are_counted_per_table_and_type(repository: Engine) -> None:
    rows = [
        conflict("c1"),
        conflict("c2"),
        conflict("c3", conflict_type="update_update"),
        conflict("c4", table_name="public.airlines"),
        conflict("c5", synchronization="london_oslo"),
    ]
    collect_conflicts(repository, rows)
    assert conflict_counts(repository) == [
        ConflictCount("london_capetown", "public.airlines", "update_delete", 1),
        ConflictCount("london_capetown", "public.flights", "update_delete", 2),
        ConflictCount("london_capetown", "public.flights", "update_update", 1),
        ConflictCount("london_oslo", "public.flights", "update_delete", 1),
    ]


def test_conflicts_can_be_counted_for_one_synchronization_and_since_a_moment(repository: Engine) -> None:
    before = NOON - timedelta(microseconds=1)
    rows = [conflict("c1"), conflict("c2", decided_at=before), conflict("c3", synchronization="london_oslo")]
    collect_conflicts(repository, rows)
    counts = conflict_counts(repository, "london_capetown", since=NOON)
    assert [(count.synchronization, count.count) for count in counts] == [("london_capetown", 1)]
