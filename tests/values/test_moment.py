"""A stamp is a time, also one that another site has made up."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.values.moment import FIRST, LAST, POSTGRESQL, UNIX, moment

EPOCHS = pytest.mark.parametrize("since", [UNIX, POSTGRESQL])


@EPOCHS
@given(st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None), timezones=st.just(UTC)))
def test_the_stamp_of_a_time_is_that_time(since: datetime, time: datetime) -> None:
    assert moment((time - since) // timedelta(microseconds=1), since) == time


@EPOCHS
@given(st.integers())
def test_each_number_is_a_time_and_the_greater_one_is_no_earlier(since: datetime, stamp: int) -> None:
    assert moment(stamp, since) <= moment(stamp + 1, since)
