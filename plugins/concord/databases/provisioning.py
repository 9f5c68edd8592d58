"""Provision several sites together: every problem of every site first, then each site in one transaction.

A site that does not answer is left out and named at the end; it never stops the others (S4-176).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from concord.databases.contract.surveyed_site import Installation, Lacked, SurveyedSite
from concord.databases.registry import dialect
from concord.messages.errors import ConcordError, ProvisioningRefused, SiteUnavailable
from concord.messages.pace import Meter, Tell, silent, told
from concord.tables.structure import Structure, differences, nullable_at_one

__all__ = ["Installation", "check", "notices", "provision", "remove", "sql"]


@dataclass(frozen=True, slots=True)
class _Survey:
    """The sites that answer, and what was wrong with the others: none of them stops the rest (S4-176)."""

    reached: list[SurveyedSite] = field(default_factory=list)
    failed: dict[str, ConcordError] = field(default_factory=dict)

    @property
    def by_kind(self) -> dict[str, list[SurveyedSite]]:
        """The sites by their databases: only those of one kind look at each other."""
        found = defaultdict[str, list[SurveyedSite]](list)
        for each in self.reached:
            found[each.installation.installer.dialect].append(each)
        return found

    def like(self, site: SurveyedSite) -> list[SurveyedSite]:
        """All of the site's own kind."""
        return self.by_kind[site.installation.installer.dialect]

    @property
    def shut_out(self) -> dict[str, Lacked]:
        """By their sites, the installers among the failed that a superuser has to let look."""
        given = {site: error.facts.get("lacked") for site, error in self.failed.items()}
        return {site: each for site, each in given.items() if isinstance(each, Lacked)}

    @property
    def lacked(self) -> list[Lacked]:
        """Of every installer that lacks something."""
        every = [*(each.lacked for each in self.reached), *self.shut_out.values()]
        return [each for each in every if each.refusal or each.problems]

    @property
    def failures(self) -> list[str]:
        """One line a site, each beginning with its name."""
        return [
            error.message if error.message.startswith(f"{site}:") else f"{site}: {error.message}"
            for site, error in self.failed.items()
        ]

    def do(self, act: Callable[[SurveyedSite], None], done: str) -> None:
        """Act at every site that answers, then name those where nothing was done; transient only if all are."""
        acted = []
        for each in self.reached:
            try:
                act(each)
                acted.append(each.installation.site)
            except ConcordError as error:
                self.failed[each.installation.site] = error
        self.name_the_failed(f"{done}: {', '.join(acted) or 'no site'}")

    def name_the_failed(self, done: str) -> None:
        """Raise for the sites where nothing was done, naming each once."""
        if self.failed:
            permanent = [type(error) for error in self.failed.values() if not error.transient]
            lines = "\n".join(f"  - {line}" for line in self.failures)
            raise (permanent or [SiteUnavailable])[0](f"{done}. Not done:\n{lines}")


@contextmanager
def _survey(installations: Sequence[Installation]) -> Iterator[_Survey]:
    """Every site looked at, through its installer."""
    with ExitStack() as stack:
        survey = _Survey()
        for each in installations:
            try:
                look_at = dialect(each.installer.dialect).provisioning.survey
                survey.reached.append(look_at(each, stack))
            except ConcordError as error:
                survey.failed[each.site] = error
        yield survey


def _problems(survey: _Survey) -> list[str]:
    sites = survey.reached
    found: list[str] = []
    for each in sites:
        found += each.problems()
    found += _pair_problems(sites)
    found += [problem for each in sites for problem in each.snapshot_problems(survey.like(each))]
    found += [problem for each in sites for problem in each.number_problems()]
    return list(dict.fromkeys([*found, *_compared(sites, differences)]))


def _pair_problems(sites: Sequence[SurveyedSite]) -> Iterator[str]:
    """Two sites that are one database; clocks too far apart (S1-27, F13)."""
    for index, first in enumerate(sites):
        for second in sites[index + 1 :]:
            one, other = first.installation, second.installation
            if first.identity == second.identity:
                yield f"{one.site} and {other.site} are the same database; give each site its own"
            apart = abs(first.clock_ahead - second.clock_ahead)
            allowed = min(one.max_clock_skew, other.max_clock_skew)
            if apart > allowed:
                yield (
                    f"the clocks of {one.site} and {other.site} are {apart:.0f} s apart, more than"
                    f" max_clock_skew ({allowed:.0f} s); synchronize them with NTP"
                )


def _compared(
    sites: Sequence[SurveyedSite], compare: Callable[[str, Structure, Structure], Iterator[str]]
) -> Iterator[str]:
    """Each site's tables against the first site that carries them."""
    first: dict[str, Structure] = {}
    for each in sites:
        for wanted in each.installation.tables:
            if (structure := each.structure(wanted)) is None:
                continue
            if wanted.name in first:
                yield from compare(wanted.name, first[wanted.name], structure)
            first.setdefault(wanted.name, structure)


def _refuse(survey: _Survey, *more: str) -> None:
    if problems := [*_problems(survey), *more]:
        every = list(dict.fromkeys([*problems, *survey.failures]))
        lines = "\n".join(f"  - {problem}" for problem in every)
        raise ProvisioningRefused(f"nothing was written, because:\n{lines}", problems=tuple(every))


def provision(installations: Sequence[Installation], tell: Tell = silent) -> list[str]:
    """Make every site ready that answers; what is to be done next, each one line.

    Raises ProvisioningRefused with one line per problem; then nothing was written anywhere. Raises
    SiteUnavailable or what else was wrong with a site, one line each, after the others were made ready.
    """
    unproven: set[tuple[str, str]] = set()
    meter = Meter("provision", "every site", of=len(installations), unit="sites")

    def act(survey: _Survey, each: SurveyedSite) -> None:
        unproven.update(each.provision(survey.like(each)))
        meter.done += 1

    with told(tell, meter), _survey(installations) as survey:
        lacked = survey.lacked
        not_to_be_given = [problem for each in lacked for problem in each.problems]
        _refuse(survey, *not_to_be_given, *(each.refusal for each in lacked if each.refusal))
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
    with _survey(installations) as survey:
        _refuse(survey, *(problem for each in survey.lacked for problem in each.problems))
        for each in survey.reached:
            yield each.installation.site, each.lacked.script or each.script(survey.like(each))
        for site, lacked in survey.shut_out.items():
            del survey.failed[site]
            yield site, lacked.script
        survey.name_the_failed("printed the others")


def check(installations: Sequence[Installation]) -> list[str]:
    """Missing, altered or dangerous objects, each one line; an empty list when all is well. Reads only."""
    with _survey(installations) as survey:
        found = [*survey.failures, *_problems(survey)]
        for each in survey.reached:
            found += each.check(survey.like(each))
        found += [deviation for each in survey.reached for deviation in each.number_deviations()]
        return list(dict.fromkeys(found))


def notices(installations: Sequence[Installation]) -> list[str]:
    """Notices, each one line. They tell of numbers that clash or run out, and of triggers that fire for links too.
    They tell of children outside of the set, and of functions of others that are run. They tell of columns that may
    be NULL at one site alone. Reads only."""
    with _survey(installations) as survey:
        found = list(_compared(survey.reached, nullable_at_one))
        for kind, sites in survey.by_kind.items():
            found += dialect(kind).provisioning.number_notices(sites)
        for each in survey.reached:
            found += each.notices()
        return found


def remove(installations: Sequence[Installation]) -> None:
    """Take Concord off every site that answers; replicated tables and their rows stay.

    Raises SiteUnavailable with one line per site that does not, after the others.
    """
    with _survey(installations) as survey:
        survey.do(lambda each: each.remove(), "removed from")
