"""The benchmark of lags: its configuration, counts and table; the benchmark itself needs minutes."""

from math import isnan
from pathlib import Path

import pytest

from benchmarks.lag import CONFIGURATION, MODES, Lags, commits_of, grid, share, until_next
from concord.configuration.configuration import load


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_a_valid_configuration(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "concord.yaml"
    path.write_text(CONFIGURATION.format(MODES[mode]))
    watch = load(path).synchronizations["london_capetown"].watch
    assert (watch is None) == mode.startswith("scheduled")


def test_the_mode_whose_p99_is_asked_for_is_measured_with_more_than_a_hundred_commits() -> None:
    counts = {mode: commits_of(mode) for mode in MODES}
    assert counts.pop("event-driven, over Connect") > 100
    assert set(counts.values()) == {40}


def test_a_commit_waits_for_the_next_run_and_the_last_ones_for_none() -> None:
    assert until_next([1.0, 5.0, 7.0, 9.0], [0.5, 4.0, 8.0]) == [3.0, 3.0, 1.0]


def test_a_share_is_what_so_many_commits_do_not_exceed() -> None:
    seconds = [float(n) for n in range(100, 0, -1)]
    assert [share(seconds, part) for part in (0.5, 0.99, 1)] == [50, 99, 100]
    assert share([7.0], 0.5) == 7
    assert isnan(share([], 0.5))


def test_the_table_has_a_line_for_each_mode() -> None:
    shown = grid([Lags("event-driven", [1.0, 2.0], [8.0, 9.0], 2, "16.1", 0.5)])
    assert shown.rows == [["event-driven", "2", "2", "1.00", "2.00", "8.00", "9.00", "9.00", "0.5"]]
    assert len(shown.head) == 9
