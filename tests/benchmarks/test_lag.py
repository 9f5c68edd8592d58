"""The benchmark of lags: its configuration, counts and table; the benchmark itself needs minutes."""

from math import isnan
from pathlib import Path

import pytest

from benchmarks.lag import Lags, grid, share, until_next
from benchmarks.lag_modes import MODES
from concord.configuration.configuration import load


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_a_valid_configuration(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "concord.yaml"
    path.write_text(MODES[mode].configuration)
    configuration = load(path)
    links = {**configuration.synchronizations, **configuration.replications}
    assert (links["london_capetown"].watch is None) == mode.endswith(("every minute", "continuous"))
    assert mode.startswith("replication") == bool(configuration.replications)


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
