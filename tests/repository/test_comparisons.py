"""A comparison's findings are kept whole, and go with their age."""

from sqlalchemy import Engine, text

from concord.jobs.comparison import CompareReport, Difference, Kind, TableComparison
from concord.repository.comparisons import differences, record_comparison
from concord.repository.purge import Retention, purge
from tests.repository.records import DAY, MINUTE, NOON, PAIR

FLIGHTS = TableComparison(
    table="public.flights",
    source_rows=10,
    target_rows=9,
    equal=8,
    differing=1,
    versions=0,
    only_source=1,
    only_target=0,
    in_flight=3,
)
FOUND = (
    Difference(
        table="public.flights",
        key=("7", "UA"),
        kind=Kind.CONTENT,
        source_row={"id": "7", "note": None},
        target_row={"id": "7", "note": "ümlaut"},
        source_version={"origin": "london#1", "changed_at": 5, "derived": 0, "vector": {}, "deleted": False},
        remedy="restamp: london to capetown, site priority and name",
    ),
    Difference(table="public.flights", key=("8", "UA"), kind=Kind.ONLY_SOURCE, source_row={"id": "8"}),
)


def recorded(repository: Engine, name: str, days_ago: int) -> None:
    report = CompareReport(
        comparison=name,
        synchronization=PAIR,
        source="london",
        target="capetown",
        tables=(FLIGHTS,),
        differences=FOUND,
    )
    at = NOON - days_ago * DAY
    record_comparison(repository, report, started_at=at - MINUTE, ended_at=at)


def test_differences_come_back_as_they_were_found(repository: Engine) -> None:
    recorded(repository, "c1", 0)
    assert tuple(differences(repository, "c1")) == FOUND
    with repository.connect() as connection:
        row = connection.execute(text("SELECT differences, in_flight, repair FROM comparison")).one()
    assert tuple(row) == (2, 3, "none")


def test_old_comparisons_go_with_their_differences(repository: Engine) -> None:
    recorded(repository, "old", 31)
    recorded(repository, "young", 29)
    keep = Retention(None, None, None, comparisons=30 * DAY)
    assert purge(repository, keep, NOON, dry_run=True).comparisons == 1
    assert len(differences(repository, "old")) == 2
    assert purge(repository, keep, NOON).comparisons == 1
    assert differences(repository, "old") == []
    assert len(differences(repository, "young")) == 2
