"""A run may be killed at any instant and repeated; a run that was overtaken commits nothing."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from concord.databases.postgresql.rows import stage
from concord.jobs.link import LinkJob
from spark_jobs.link import transmit
from tests.given.fixtures import MakePair
from tests.given.killed_driver import Forked, killed, started, wait_until_stopped
from tests.given.link_steps import STEPS
from tests.given.two_sites import Pair
from tests.link.kills.edited_fleet import FLEET, edit_both, is_as_if_never_killed

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("carried_by_spark")]

#: Which of them a kill test stops at: each at its first time, and those inside the second table's write.
KILLED_AT = [*((step, 1) for step in dict.fromkeys(STEPS)), ("shadow", 2)]


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    made = pair(*FLEET)
    edit_both(made)
    return made


def test_a_link_takes_these_steps(sites: Pair) -> None:
    """A step that is added must be killed at, too."""
    taken: list[str] = []
    transmit(sites.job(), sites.spark, taken.append)
    assert taken == STEPS


def test_a_reader_sees_all_of_a_link_or_nothing(sites: Pair) -> None:
    """S1-55: a link is one transaction of its target.

    At every step until the commit that site is as it was: rows, versions, conflicts and position.
    """
    queries = (
        "TABLE plane",
        "TABLE flight",
        'TABLE concord."public.flight"',
        "SELECT id FROM concord.conflict",
    )
    state = "SELECT history FROM concord.link_state WHERE link = 'london_capetown/forward'"

    def seen() -> list[object]:
        return [sites.capetown.rows(query) for query in (*queries, state)]

    before, at_step = seen(), {}
    transmit(sites.job(), sites.spark, lambda step: at_step.__setitem__(step, seen()))

    assert [step for step, found in at_step.items() if found != before] == ["remember", "clean_up"]


def test_without_a_kill_the_sites_end_like_this(sites: Pair) -> None:
    sites.settle()
    is_as_if_never_killed(sites)


@pytest.mark.parametrize(("step", "occurrence"), KILLED_AT, ids=[f"{step} {n}" for step, n in KILLED_AT])
def test_a_run_killed_at_any_step_can_be_repeated(sites: Pair, step: str, occurrence: int) -> None:
    job = sites.job()
    killed(sites, partial(transmit, job, sites.spark), step, occurrence)
    can_be_repeated(sites, job)


@pytest.mark.long
@pytest.mark.usefixtures("classic")
def test_a_run_killed_together_with_its_java_can_be_repeated(sites: Pair, tmp_path: Path) -> None:
    job = sites.job()
    ended = started(job, "write", tmp_path)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    can_be_repeated(sites, job)


def can_be_repeated(sites: Pair, job: LinkJob) -> None:
    reports = sites.settle()
    is_as_if_never_killed(sites)
    assert all(table.adds_up for report in reports for table in report.tables)
    assert reports[-1].total("acquired") == reports[-2].total("acquired") == 0
    left = {name.split("_")[1] for name in stage.orphans(sites.capetown.connection, [])}
    assert left <= {job.transmission}, "only the killed run leaves staging behind, for log_purge to find"


@pytest.mark.parametrize(
    ("step", "occurrence", "code"),
    [("hold_fence", 1, "lease_lost"), ("commit", 1, "site_unavailable"), ("remember", 1, "lease_lost")],
)
def test_a_run_that_was_overtaken_commits_nothing_and_holds_nobody_up(
    sites: Pair, step: str, occurrence: int, code: str
) -> None:
    zombie = Forked(sites, partial(transmit, sites.job(), sites.spark), signal.SIGSTOP, step, occurrence)
    try:
        wait_until_stopped(zombie)
        began = time.monotonic()
        sites.settle()
        took = time.monotonic() - began
        is_as_if_never_killed(sites)
        before = [site.stored for site in sites.sites]
    finally:
        os.kill(zombie.pid, signal.SIGCONT)
        ended = zombie.wait()
    assert ended == (1, code)
    assert took < 60
    is_as_if_never_killed(sites)
    assert [site.stored ^ old for site, old in zip(sites.sites, before, strict=True)] == [set(), set()]
