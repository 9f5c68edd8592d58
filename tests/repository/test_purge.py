"""Old records go, young and needed ones stay, and a dry run says the same without doing it."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import Engine, event, text

from concord.repository.conflicts import collect_conflicts
from concord.repository.purge import PurgeReport, Retention, purge
from concord.repository.runs import Scope, fail_run
from concord.repository.status import last_runs, transmissions
from concord.repository.transmissions import record_transmission
from tests.repository.records import DAY, MINUTE, NOON, begun, completed, conflict, leased, report

MONTH = Retention(conflicts=30 * DAY, transmissions=30 * DAY, runs=30 * DAY)
OLD = NOON - 40 * DAY
NOTHING = PurgeReport(conflicts=0, transmissions=0, runs=0, dry_run=False)


def sent(repository: Engine, run_id: str, ended_at: datetime) -> str:
    what = report()
    record_transmission(repository, run_id, what, started_at=ended_at - MINUTE, ended_at=ended_at)
    return what.transmission


def failed(repository: Engine, ended_at: datetime) -> str:
    run_id = begun(repository, leased(repository, ended_at - MINUTE))
    fail_run(repository, run_id, "no", ended_at)
    return run_id


def ids(repository: Engine, table: str) -> set[str]:
    with repository.connect() as connection:
        return set(connection.scalars(text(f"SELECT id FROM {table}")))


def test_each_kind_goes_after_its_own_retention(repository: Engine) -> None:
    ages = Retention(conflicts=10 * DAY, transmissions=20 * DAY, runs=30 * DAY)
    for days in (9, 11, 19, 21, 29, 31):
        collect_conflicts(repository, [conflict(f"c{days}", decided_at=NOON - days * DAY)])
        sent(repository, failed(repository, NOON - days * DAY), NOON - days * DAY)
    assert purge(repository, ages, NOON) == PurgeReport(conflicts=5, transmissions=3, runs=1, dry_run=False)
    assert ids(repository, "conflict") == {"c9"}


def test_a_record_exactly_as_old_as_its_retention_stays(repository: Engine) -> None:
    collect_conflicts(repository, [conflict("c1", decided_at=NOON - 30 * DAY)])
    sent(repository, failed(repository, NOON - 30 * DAY), NOON - 30 * DAY)
    assert purge(repository, MONTH, NOON) == NOTHING
    assert purge(repository, MONTH, NOON + timedelta(microseconds=1)) == PurgeReport(1, 1, 1, dry_run=False)


def test_what_has_no_retention_stays_for_ever(repository: Engine) -> None:
    collect_conflicts(repository, [conflict("c1", decided_at=OLD)])
    sent(repository, failed(repository, OLD), OLD)
    for_ever = Retention(conflicts=None, transmissions=None, runs=None)
    assert purge(repository, for_ever, NOON + 10_000 * DAY) == NOTHING


def test_a_dry_run_reports_the_same_numbers_and_deletes_nothing(repository: Engine) -> None:
    collect_conflicts(repository, [conflict(f"c{n}", decided_at=OLD) for n in range(3)])
    for run_id in [
        failed(repository, OLD),
        failed(repository, OLD + DAY),
        completed(repository, OLD + 2 * DAY),
    ]:
        sent(repository, run_id, OLD)
    sent(repository, failed(repository, OLD + 3 * DAY), NOON)
    expected = {"conflicts": 3, "transmissions": 3, "runs": 2}
    assert purge(repository, MONTH, NOON, dry_run=True) == PurgeReport(**expected, dry_run=True)
    assert purge(repository, MONTH, NOON, dry_run=True) == PurgeReport(**expected, dry_run=True)
    assert purge(repository, MONTH, NOON) == PurgeReport(**expected, dry_run=False)
    assert purge(repository, MONTH, NOON) == NOTHING


def test_a_running_run_stays_with_its_transmissions_however_old(repository: Engine) -> None:
    running = begun(repository, leased(repository, OLD))
    transmission = sent(repository, running, OLD)
    assert purge(repository, MONTH, NOON) == NOTHING
    assert [sent.id for sent in transmissions(repository, running)] == [transmission]


def test_the_last_completed_run_of_each_synchronization_stays(repository: Engine) -> None:
    completed(repository, OLD)
    last = completed(repository, OLD + DAY)
    failed(repository, OLD + 2 * DAY)
    other = completed(repository, OLD, synchronization="london_oslo")
    assert purge(repository, MONTH, NOON).runs == 2
    assert ids(repository, "synchronization_run") == {last, other}


@pytest.mark.parametrize("scope", [Scope(plan_only=True), Scope(tables=["public.flights"])])
def test_a_partial_run_does_not_take_the_place_of_the_last_whole_one(
    repository: Engine, scope: Scope
) -> None:
    whole = completed(repository, OLD)
    completed(repository, OLD + DAY, scope)
    assert purge(repository, MONTH, NOON).runs == 1
    assert ids(repository, "synchronization_run") == {whole}


def test_a_run_stays_while_a_transmission_of_it_stays(repository: Engine) -> None:
    run_id = failed(repository, OLD)
    sent(repository, run_id, OLD)
    keep_transmissions = Retention(conflicts=None, transmissions=90 * DAY, runs=DAY)
    assert purge(repository, keep_transmissions, NOON) == NOTHING
    assert [run.id for run in last_runs(repository)] == [run_id]


def test_a_purge_goes_in_batches_of_bounded_size(repository: Engine) -> None:
    collect_conflicts(repository, [conflict(f"c{n}", decided_at=OLD) for n in range(25)])
    deleted: list[int] = []

    @event.listens_for(repository, "after_cursor_execute")
    def count(*execution: object) -> None:
        if str(execution[2]).startswith(("DELETE FROM conflict", 'DELETE FROM "conflict"')):
            deleted.append(execution[1].rowcount)  # type: ignore[attr-defined]

    assert purge(repository, MONTH, NOON, batch=10).conflicts == 25
    assert deleted == [10, 10, 5]
