"""The lag and the rate of transmissions are kept, and so is what is missed (S2-10, S2-11)."""

import pytest
from sqlalchemy import Engine

from concord.jobs.link import Direction
from concord.repository.objectives import forget_missed, keep_missed, last_measured, missed
from concord.repository.runs import Scope
from concord.repository.status import transmissions
from concord.repository.transmissions import record_transmission
from concord.rules.objective import Aim, Measured
from tests.repository.records import DAY, MINUTE, NOON, PAIR, begun, leased, report

LINK = f"{PAIR}/forward"


def test_a_rate_is_all_rows_over_the_seconds_of_staging_and_writing() -> None:
    """S2-10."""
    seconds = {"open": 7.0, "stage": 1.5, "write": 0.25, "replay": 0.25, "throttle": 60.0}
    assert report(seconds=seconds).rows_per_second == 10
    assert report(seconds={"open": 7.0}).rows_per_second is None
    assert report(seconds=seconds, tables=()).rows_per_second is None


def test_the_newest_lag_and_the_newest_rate_of_a_link_are_what_is_known_of_it(repository: Engine) -> None:
    run = begun(repository, leased(repository))
    measured = [
        (NOON, {"lag": 30.0, "seconds": {"write": 2.0}}),
        (NOON + MINUTE, {"lag": 40.0, "seconds": {}}),
        (NOON - DAY, {"lag": 50.0, "seconds": {"write": 4.0}}),
        (NOON + DAY, {"lag": 60.0, "direction": Direction.REVERSE, "seconds": {"write": 5.0}}),
    ]
    for start, facts in measured:
        record_transmission(repository, run, report(**facts), started_at=start, ended_at=start + MINUTE)
    assert last_measured(repository) == {
        LINK: Measured(40, 20, 10),
        f"{PAIR}/reverse": Measured(60, 20, 4),
    }
    assert [(each.lag, each.rows_per_second) for each in transmissions(repository, run)] == [
        (50, 5), (30, 10), (40, None), (60, 4)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "facts"),
    [
        (Scope(plan_only=True), {"plan_only": True}),
        (Scope(tables=["public.flights"]), {}),
        (Scope(), {"error_code": "site_unavailable", "error_message": "away"}),
    ],
)
def test_what_carried_not_all_that_the_link_had_to_send_measures_nothing(
    repository: Engine, scope: Scope, facts: dict[str, object]
) -> None:
    run = begun(repository, leased(repository), scope)
    sent = report(lag=30.0, seconds={"write": 2.0}, **facts)
    record_transmission(repository, run, sent, started_at=NOON, ended_at=NOON + MINUTE)
    assert last_measured(repository) == {}


def test_a_miss_is_known_since_it_was_first_seen_until_it_is_forgotten(repository: Engine) -> None:
    way = (repository, PAIR, Direction.FORWARD)
    assert missed(repository) == {}
    keep_missed(*way, Aim.LAG, NOON)
    keep_missed(*way, Aim.LAG, NOON + DAY)
    keep_missed(*way, Aim.RATE, NOON + MINUTE)
    keep_missed(repository, PAIR, Direction.REVERSE, Aim.LAG, NOON)
    forward, reverse = {Aim.LAG: NOON, Aim.RATE: NOON + MINUTE}, {Aim.LAG: NOON}
    assert missed(repository) == {LINK: forward, f"{PAIR}/reverse": reverse}
    forget_missed(*way, Aim.LAG)
    assert missed(repository) == {LINK: {Aim.RATE: NOON + MINUTE}, f"{PAIR}/reverse": reverse}
