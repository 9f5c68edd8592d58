"""A person's view of the repository."""

from sqlalchemy import Engine

from concord.repository.status import SynchronizationStatus, last_runs, links, synchronizations
from tests.repository.records import DAY, MINUTE, NOON, completed, leased


def test_an_empty_repository_has_nothing_to_show(repository: Engine) -> None:
    assert (synchronizations(repository), links(repository), last_runs(repository)) == ([], [], [])


def test_a_synchronization_shows_who_runs_it_and_when_it_was_last_done(repository: Engine) -> None:
    completed(repository, NOON, synchronization="london_oslo")
    completed(repository, NOON)
    lease = leased(repository, NOON + DAY, owner="run_2")
    assert synchronizations(repository) == [
        SynchronizationStatus(
            name="london_capetown",
            epoch=lease.epoch,
            owner="run_2",
            lease_acquired_at=NOON + DAY,
            lease_expires_at=NOON + DAY + 10 * MINUTE,
            last_started_at=NOON,
        ),
        SynchronizationStatus(
            name="london_oslo",
            epoch=int(NOON.timestamp() * 1000),
            owner=None,
            lease_acquired_at=None,
            lease_expires_at=None,
            last_started_at=NOON,
        ),
    ]


def test_the_newest_runs_come_first_and_no_more_than_asked(repository: Engine) -> None:
    runs = [completed(repository, NOON + n * DAY) for n in range(4)]
    other = completed(repository, NOON + 9 * DAY, synchronization="london_oslo")
    assert [run.id for run in last_runs(repository, limit=2)] == [other, runs[3]]
    assert [run.id for run in last_runs(repository, "london_capetown")] == list(reversed(runs))
