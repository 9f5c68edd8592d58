"""A test's questions to a comparison, and how it damages a site behind the back of capture."""

from typing import Any

from concord.databases.postgresql.capture import triggers
from concord.jobs.comparison import CompareJob, CompareReport, Repair, TableComparison
from spark_jobs.compare import compare
from tests.given.two_sites import At, Pair, Site

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


def behind_the_back(site: Site, *statements: str) -> None:
    """As a superuser who silences the triggers: what capture would miss too, did it not fire under replica role."""
    tables = site.rows("SELECT relation, keeps_base FROM concord.replicated_table")
    for table, _ in tables:
        site.run(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    site.run(*statements)
    for table, keeps_base in tables:
        site.run(triggers.enabling(table, rows_alone=keeps_base))
