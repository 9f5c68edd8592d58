"""A long work says rows, rate and time left; a short one says nothing."""

import time

import pytest

from concord.messages import pace
from concord.messages.pace import Meter, Pace, now_and_then, silent, told


@pytest.mark.parametrize(
    ("told_of", "said"),
    [
        (
            {"done": 120_000, "of": 336_776, "seconds": 12.0},
            "initialize public.flights: 120,000 of about 336,776 rows, 10,000 a second, about 22 s left",
        ),
        (
            {"done": 200, "of": 100, "seconds": 2.0},
            "initialize public.flights: 200 of about 100 rows, 100 a second, about 0 s left",
        ),
        ({"done": 30, "seconds": 3.0}, "initialize public.flights: 30 rows, 10 a second"),
        ({"seconds": 4.2}, "initialize public.flights: 4 s so far"),
        ({"of": 500, "seconds": 4.2}, "initialize public.flights: about 500 rows, 4 s so far"),
        (
            {"done": 300, "before": 200, "of": 400, "seconds": 10.0},
            "initialize public.flights: 300 of about 400 rows, 10 a second, about 10 s left",
        ),
        (
            {"done": 100, "of": 100_000, "seconds": 10.0},
            "initialize public.flights: 100 of about 100,000 rows, 10 a second, about 2.8 h left",
        ),
    ],
    ids=[
        "under way",
        "more than estimated",
        "no estimate",
        "nothing known",
        "nothing yet",
        "resumed",
        "hours",
    ],
)
def test_a_pace_says_rows_rate_and_time_left(told_of: dict[str, float], said: str) -> None:
    assert str(Pace.model_validate({"work": "initialize", "what": "public.flights", **told_of})) == said


def test_a_work_that_ends_within_a_second_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "EVERY", 100)  # a second may pass while others use the machine
    heard: list[Pace] = []
    with told(heard.append, Meter("write", "1 table", of=10)) as meter:
        meter.done = 10
        time.sleep(0.1)
    assert heard == []


def test_a_long_work_is_told_of_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "EVERY", 0.01)
    heard: list[Pace] = []
    with told(heard.append, Meter("write", "1 table", of=10)) as meter:
        for rows in range(10):
            meter.done, before = rows, len(heard)
            end = time.monotonic() + 100
            while len(heard) < before + 2:  # the first may have been under way
                assert time.monotonic() < end
                time.sleep(0.001)
    counted = [each.done for each in heard]
    assert counted == sorted(counted)
    assert set(counted) == set(range(10))
    quiet = len(heard)
    time.sleep(0.05)
    assert len(heard) == quiet, "it ends with the work"


def test_a_log_has_a_line_a_while_and_none_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Pace] = []
    now = 0.0
    monkeypatch.setattr(pace, "monotonic", lambda: now)
    tell = now_and_then(heard.append, 10)
    for now in (0, 3, 9, 10, 12, 19, 21, 30, 31, 60, 61):
        tell(Pace(work="write", what="1 table", seconds=now))
    assert [each.seconds for each in heard] == [10, 21, 31, 60]


def test_who_wants_to_hear_nothing_costs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace.threading, "Thread", None)
    with told(silent, Meter("write", "1 table")):
        pass
