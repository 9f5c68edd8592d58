"""One link while it is transmitted: what its steps need, and what they ask of Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import SourceEnd, TargetEnd
from concord.databases.contract.questions import Answer
from concord.databases.contract.reading import Reading
from concord.databases.contract.rows import Shape, Staged
from concord.jobs.link import LinkJob
from concord.messages.errors import ConcordError
from concord.messages.event_log import log_event, logger_named
from concord.rules.hook_function import AboutToBeWritten, Hooked, Word
from concord.transmission.opening import Opened, open_link
from concord.transmission.staged_table import StagedTable
from concord.transmission.steps import Steps
from concord.transmission.straight import SparkCarries
from concord.versions.position import LinkPosition

logger = logger_named("concord.link")


@dataclass(frozen=True)
class Changes:
    """Changes of one table that Spark judges."""

    table: str
    ordinal: int  #: of its place in staging
    reading: Reading
    rows: int  #: as the source counted them
    candidates: int  #: versions at the target that they may meet
    met: Sequence[str]  #: keys of conflicts that the write found in an earlier round


class SparkSteps(SparkCarries, Protocol):
    """Spark's part in a link. Most links ask nothing of it, and should not pay for its import."""

    def planned(self, link: Link, changes: Changes) -> tuple[Counter[str], Mapping[str, Sequence[str]]]:
        """Rows per verdict, and why where a verdict stops the table. Raises LinkFailed."""

    def staged(self, link: Link, changes: Changes) -> tuple[Staged, StagedTable]:
        """The changes with their verdicts in staging: where, and what the tasks counted. Raises LinkFailed."""

    def answers(self, shape: Shape, shown: Sequence[Mapping[str, object]]) -> Sequence[Answer]:
        """The decisions of somebody else's function, asked in this process; Spark is not started for it."""

    def ask_hook(self, hooked: Hooked, rows: Sequence[AboutToBeWritten]) -> Sequence[Word]:
        """The words of a hook on rows that are about to be written, likewise. Raises HookFailed."""


@dataclass(frozen=True)
class Link:
    """Both ends while they are open, what they agreed on, and whoever takes part."""

    job: LinkJob
    dialect: Dialect  #: of the source
    source: SourceEnd
    target: TargetEnd
    opened: Opened
    steps: Steps
    spark: SparkSteps

    @property
    def position(self) -> LinkPosition:
        """Up to which the source's changes have been carried before."""
        return self.opened.going_on.session.position

    @property
    def positions(self) -> dict[str, str]:
        """The same by table."""
        return {name: self.position.of(name) for name in self.opened.shapes}


@contextmanager
def opened(
    job: LinkJob, dialects: Callable[[str], Dialect], spark: SparkSteps, steps: Steps
) -> Iterator[Link]:
    """The link, open at both ends while the block runs; what it has staged goes with it.

    Raises what `open_link` raises, and ConnectionRefused or SiteUnavailable.
    """
    with ExitStack() as ends:
        with steps.step("open"):
            source, target = _open(job, dialects, ends)
        with steps.step("inspect"):
            agreed = open_link(job, source, target, steps.progress)
        position = agreed.going_on.session.position
        log_event(logger, "goes on from its position", link=job.link, position=position.common)
        try:
            yield Link(job, dialects(job.source.dialect), source, target, agreed, steps, spark)
        finally:
            with steps.step("clean_up"):
                target.drop_staging()


def _open(job: LinkJob, dialects: Callable[[str], Dialect], ends: ExitStack) -> tuple[SourceEnd, TargetEnd]:
    """Both at the same time, since a login takes a while. Raises the source's error first, when both have answered."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        logging_in = threads.submit(dialects(job.target.dialect).target, job)
        try:
            source = dialects(job.source.dialect).source(job)
            ends.callback(source.close)
        finally:
            with suppress(ConcordError):
                ends.callback(logging_in.result().close)
    return source, logging_in.result()
