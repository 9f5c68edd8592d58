"""When an objective is missed, and of which people hear (S2-10, S2-11)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.rules.objective import Aim, Measured, Objective, news, seconds_until, waits_since

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

numbers = st.floats(0, 1e6, allow_nan=False)
aims = st.sampled_from(Aim)
moments = st.integers(0, 1000).map(lambda minutes: NOON - minutes * MINUTE)


def test_a_lag_is_kept_up_to_the_objective_and_a_rate_from_it_on() -> None:
    """S2-10, S2-11."""
    wanted = Objective(lag=60, rows_per_second=1000)
    assert wanted.judged(Measured(60, 5000, 1000)) == {Aim.LAG: True, Aim.RATE: True}
    assert wanted.judged(Measured(60.1, 5000, 999.9)) == {Aim.LAG: False, Aim.RATE: False}


@given(numbers, numbers, st.integers(0, 10**6), numbers)
def test_what_is_unknown_or_not_wanted_is_never_judged(
    lag: float, rate: float, rows: int, wanted: float
) -> None:
    assert Objective().judged(Measured(lag, rows, rate)) == {}
    assert Objective(wanted, wanted).judged(Measured(None, rows, None)) == {}
    assert set(Objective(lag=wanted).judged(Measured(lag, rows, rate))) == {Aim.LAG}


@given(st.integers(0, 2000), numbers)
def test_a_run_of_less_than_a_seconds_rows_says_nothing_of_the_rate(rows: int, rate: float) -> None:
    """S2-10: of few rows it is the logins that take the time."""
    judged = Objective(rows_per_second=1000).judged(Measured(None, rows, rate))
    assert (Aim.RATE in judged) is (rows >= 1000)


def test_a_run_of_exactly_one_seconds_rows_is_judged_by_its_rate() -> None:
    """S2-10."""
    wanted = Objective(rows_per_second=1000)
    assert wanted.judged(Measured(rows=1000, rows_per_second=1000)) == {Aim.RATE: True}
    assert wanted.judged(Measured(rows=1000, rows_per_second=999)) == {Aim.RATE: False}
    assert wanted.judged(Measured(rows=999, rows_per_second=999)) == {}


@given(st.lists(st.tuples(st.dictionaries(aims, st.booleans()), st.booleans())))
def test_each_miss_is_told_once_and_its_end_once_whatever_comes(
    looks: list[tuple[dict[Aim, bool], bool]],
) -> None:
    """Messages of one aim always alternate. Only a run that has ended tells that it is kept again."""
    missed, told = set[Aim](), dict[Aim, list[bool]]({aim: [] for aim in Aim})
    for judged, run_has_ended in looks:
        for aim, kept in news(judged, missed, run_has_ended=run_has_ended).items():
            assert kept is judged[aim]
            assert run_has_ended or not kept
            told[aim].append(kept)
            missed ^= {aim}
        for aim, kept in judged.items():
            if run_has_ended or not kept:
                assert (aim in missed) is not kept, "what people have heard is what was last seen"
    for messages in told.values():
        assert messages == [bool(place % 2) for place in range(len(messages))]


@pytest.mark.parametrize(
    ("pending", "oldest", "last_start", "since"),
    [
        (0, None, NOON - 60 * MINUTE, NOON),  # nothing waits, however long ago the last run was
        (1, NOON - 5 * MINUTE, NOON - 60 * MINUTE, NOON - 5 * MINUTE),  # a commit after a quiet hour
        (1, NOON - 600 * MINUTE, NOON - 60 * MINUTE, NOON - 60 * MINUTE),  # of a long transaction
        (1, None, NOON - 60 * MINUTE, NOON - 60 * MINUTE),
        (1, NOON - 5 * MINUTE, None, NOON - 5 * MINUTE),  # its first run
        (1, None, None, None),
    ],
)
def test_a_change_waits_from_its_commit_on(
    pending: int, oldest: datetime | None, last_start: datetime | None, since: datetime | None
) -> None:
    """S2-11."""
    assert waits_since(NOON, pending, oldest, last_start) == since


@given(moments, moments, moments, st.integers(0, 100))
def test_no_change_ever_waited_longer_than_is_said(
    changed: datetime, commit: datetime, last_start: datetime, later: int
) -> None:
    """It was changed before its commit, and the last completed run did not see that."""
    changed, commit = min(changed, commit), max(commit, last_start)
    since, visible = waits_since(NOON, 1, changed, last_start), NOON + later * MINUTE
    said = seconds_until(visible, since)
    assert said is not None
    assert said >= (visible - commit).total_seconds()


@given(moments, moments)
def test_clocks_that_differ_make_no_lag_less_than_none(moment: datetime, since: datetime) -> None:
    assert seconds_until(moment, since) == max(0.0, (moment - since).total_seconds())
    assert seconds_until(moment, None) is None
