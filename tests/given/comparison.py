"""A test's questions to a comparison, and how it damages a site behind the back of capture."""

from typing import Any

from concord.jobs.comparison import CompareJob, CompareReport, Repair, TableComparison
from spark_jobs.compare import compare
from tests.given.at_step import At
from tests.given.two_sites import Pair

#: A key: what kind of difference it is.
Kinds = dict[tuple[str, ...], str]


def compared(pair: Pair, repair: str = "none", at: At | None = None, **asked: Any) -> CompareReport:
    fields = {name: asked.pop(name) for name in ("prefer", "kept") if name in asked}
    job = CompareJob(link=pair.job("forward", **asked), repair=Repair(repair), **fields)
    report = compare(job, pair.spark, at or (lambda step: None))
    assert at is None or at.reached, f"no comparison takes the step {at.step}"
    return report


def kinds(report: CompareReport) -> Kinds:
    return {each.key: each.kind.value for each in report.differences}


def only(report: CompareReport) -> TableComparison:
    (table,) = report.tables
    return table
