"""Provision several sites together: every problem of every site first, then each site in one transaction.

A site that does not answer is left out and named at the end; it never stops the others (S4-176).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from concord.databases.contract.surveyed_site import Installation, SurveyedSite
from concord.databases.leaving_out import Accepted, accepted
from concord.databases.refusals import compared, refusals, refusals_but_rights, refuse
from concord.databases.registry import dialect
from concord.databases.survey import Survey, surveyed
from concord.messages import grouped
from concord.messages.pace import Meter, Tell, silent, told
from concord.tables.structure import nullable_at_one

__all__ = [
    "Accepted",
    "Installation",
    "accepted",
    "check",
    "grouped_lines",
    "notices",
    "provision",
    "remove",
    "sql",
]


def provision(installations: Sequence[Installation], tell: Tell = silent) -> list[str]:
    """Make every site ready that answers; what is to be done next, each one line.

    Raises ProvisioningRefused with one line per problem; then nothing was written anywhere. Raises
    SiteUnavailable or what else was wrong with a site, one line each, after the others were made ready.
    """
    unproven: set[tuple[str, str]] = set()
    meter = Meter("provision", "every site", of=len(installations), unit="sites")

    def act(survey: Survey, each: SurveyedSite) -> None:
        unproven.update(each.provision(survey.like(each)))
        meter.done += 1

    with told(tell, meter), surveyed(installations) as survey:
        refuse(survey, refusals(survey))
        survey.do(partial(act, survey), "provisioned")
    return [_to_initialize(synchronization, unproven) for synchronization in sorted(dict(unproven))]


def _to_initialize(synchronization: str, unproven: set[tuple[str, str]]) -> str:
    tables = ", ".join(sorted(table for name, table in unproven if name == synchronization))
    return (
        f"{synchronization}: {tables}: changes may have been missed, or are seen otherwise now; run `initialize"
        f" {synchronization}`, before which its links do not carry them"
    )


def sql(installations: Sequence[Installation]) -> Iterator[tuple[str, str]]:
    """The same, as (site, script for a DBA to run); for an installer that lacks something, the script that gives it.

    Raises as `provision` does, the latter after the last script.
    """
    with surveyed(installations) as survey:
        refuse(survey, refusals_but_rights(survey))
        for each in survey.reached:
            yield each.installation.site, each.lacked.script or each.script(survey.like(each))
        for site, lacked in survey.shut_out.items():
            del survey.failed[site]
            yield site, lacked.script
        survey.name_the_failed("printed the others")


def check(installations: Sequence[Installation]) -> list[str]:
    """The reasons for which `provision` would refuse, and missing, altered or dangerous objects, each one line.

    An empty list when all is well. Reads only.
    """
    with surveyed(installations) as survey:
        refused = refusals(survey)
        found = [*survey.failures, *(each.text for each in refused)]
        tables = {name for each in refused for name in each.tables}
        for each in survey.reached:
            found += each.check(survey.like(each), tables)
        return list(dict.fromkeys(found))


def notices(installations: Sequence[Installation]) -> list[str]:
    """Notices, each one line. They tell of numbers that clash or run out, and of triggers that fire for links too.
    They tell of children outside of the set, and of functions of others that are run. They tell of columns that may
    be NULL at one site alone. Reads only."""
    with surveyed(installations) as survey:
        found = [each.text for each in compared(survey.reached, nullable_at_one)]
        for kind, sites in survey.by_kind.items():
            found += dialect(kind).provisioning.number_notices(sites)
        for each in survey.reached:
            found += each.notices()
        return found


def grouped_lines(installations: Sequence[Installation], lines: Iterable[str]) -> list[str]:
    """Lines of `check` or `notices` for people: those that differ in the table alone are one."""
    return grouped.grouped(lines, {name for each in installations for name in each.names})


def remove(installations: Sequence[Installation]) -> None:
    """Take Concord off every site that answers; replicated tables and their rows stay.

    Raises SiteUnavailable with one line per site that does not, after the others.
    """
    with surveyed(installations) as survey:
        survey.do(lambda each: each.remove(), "removed from")
