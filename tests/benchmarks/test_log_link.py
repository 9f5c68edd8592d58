"""The benchmark of links by the log runs real links of both kinds of capture."""

from pathlib import Path

import pytest

from benchmarks import databases
from benchmarks.capture import LOGICAL
from benchmarks.databases import SETTINGS, ServerKind
from benchmarks.log_link import Plan, Sites, lines, measure
from concord.jobs.link import Direction
from concord.jobs.site import Capture
from demo import terminal
from demo.progress import Progress


@pytest.mark.long
def test_both_kinds_carry_the_same_edits_and_the_log_alone_is_registered(tmp_path: Path) -> None:
    with databases.running_pair(tmp_path, ServerKind(settings=SETTINGS | LOGICAL)) as pair:
        kinds = [Sites(Capture.TRIGGERS, pair), Sites(Capture.LOG, pair.another("by_log"))]
        databases.fill_pair(pair, 100)
        databases.copy_pair(pair, kinds[1].pair)
        for each in kinds:
            each.begin()
        [measured] = measure(kinds, Plan(100, (10,), 2), Progress(terminal.console()))
        [counted] = {each.row("SELECT count(*) FROM edited") for each in (pair.london, kinds[1].pair.london)}
    assert counted == (10,)
    for way in Direction:
        log, triggers = (measured.runs[capture, way] for capture in (Capture.LOG, Capture.TRIGGERS))
        assert [len(log), len(triggers)] == [2, 2]
        assert all("register" in each for each in log)
    assert [line[0] for line in lines([measured])] == ["10", "10"]
