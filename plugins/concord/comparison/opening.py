"""Open a pair for comparison: both sites read, and written as well where a repair was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from concord.databases.contract.compared_site import ComparedSite
from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Progress, TargetEnd
from concord.databases.contract.rows import Shape
from concord.jobs.comparison import CompareJob, Repair
from concord.jobs.link import LinkJob
from concord.messages.errors import ConcordError
from concord.transmission.opening import Opened, open_link
from concord.transmission.steps import Steps


@dataclass(frozen=True)
class OpenedSites:
    """Both sites, read; and, for a repair, both written."""

    read: tuple[ComparedSite, ComparedSite]
    written: tuple[TargetEnd, TargetEnd] | None
    link: Opened

    @property
    def shapes(self) -> tuple[Mapping[str, Shape], Mapping[str, Shape]]:
        ours, theirs = self.link.shapes, self.link.target_shapes
        return (
            {name: shape.readable_with(theirs[name]) for name, shape in ours.items()},
            {name: shape.readable_with(ours[name]) for name, shape in theirs.items() if name in ours},
        )


@contextmanager
def opened_sites(job: CompareJob, dialects: Callable[[str], Dialect], steps: Steps) -> Iterator[OpenedSites]:
    """Both sites, while the block runs. Raises what `open_link` raises."""
    with ExitStack() as stack:
        with steps.step("open"):
            ends = [_closing(stack, dialects(link.source.dialect).compared(link)) for link in _links(job)]
        with steps.step("inspect"):
            opened = _open(job, ends, dialects, stack, steps.progress)
        yield opened


def _links(job: CompareJob) -> tuple[LinkJob, LinkJob]:
    return job.link, job.related


def _closing(stack: ExitStack, end: Any) -> Any:
    stack.callback(end.close)
    return end


def _open(
    job: CompareJob,
    ends: Sequence[Any],
    dialects: Callable[[str], Dialect],
    stack: ExitStack,
    progress: Progress,
) -> OpenedSites:
    """Refuse what a link would refuse; a repair takes the epoch at both sites, a comparison takes nothing."""
    source, target = ends
    looked_at = open_link(job.link.model_copy(update={"plan_only": True}), source, target, progress)
    if source.probe() != target.probe():
        raise ConcordError(
            f"{job.link.source.name} and {job.link.target.name} hash alike texts differently: their machines differ in"
            " byte order, and a comparison would read every row. Compare by initialize__… instead"
        )
    if job.repair is not Repair.APPLY:
        return OpenedSites((source, target), None, looked_at)
    at_source, at_target = (
        _closing(stack, dialects(link.target.dialect).target(link)) for link in reversed(_links(job))
    )
    progress("fence")
    at_source.fence()
    at_target.fence()
    return OpenedSites((source, target), (at_source, at_target), looked_at)
