"""An interval of versions: half open, in microseconds, whatever kind of moment it is made of."""

from datetime import UTC, datetime, timedelta, timezone

import pendulum
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.values.interval import Interval

INDIA = timezone(timedelta(hours=5, minutes=30))
MICROSECONDS = st.integers(0, 5_000_000_000_000_000)


@given(start=MICROSECONDS, length=st.integers(1, 10**14))
def test_it_is_exact_to_the_microsecond_whatever_kind_of_moment_it_is_made_of(
    start: int, length: int
) -> None:
    interval = Interval(start=start, end=start + length)
    starts_at, ends_at = interval.starts_at.astimezone(INDIA), interval.ends_at
    assert Interval.between(starts_at, ends_at) == interval
    assert Interval.between(pendulum.instance(starts_at), pendulum.instance(ends_at)) == interval


def test_an_empty_one_is_refused() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    with pytest.raises(ValueError, match="is empty"):
        Interval.between(noon, noon)
