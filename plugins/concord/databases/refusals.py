"""The one list of reasons not to provision: `provision` refuses by it, and `provision --check` prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from concord.databases.contract.refusal import Refusal, of_site, of_table
from concord.databases.contract.surveyed_site import SurveyedSite
from concord.databases.survey import Survey
from concord.messages.errors import ProvisioningRefused
from concord.messages.grouped import grouped
from concord.tables.structure import Structure, differences


def refusals(survey: Survey) -> list[Refusal]:
    """Every reason why these sites are not provisioned, each once."""
    lacked = (each.refusal for each in survey.lacked if each.refusal)
    return _each_once([*refusals_but_rights(survey), *of_site(lacked)])


def refusals_but_rights(survey: Survey) -> list[Refusal]:
    """The same without the rights that the script of `provision --print-sql` gives an installer."""
    sites = survey.reached
    found = [refusal for each in sites for refusal in each.refusals(survey.like(each))]
    found += of_site(_pair_problems(sites))
    found += compared(sites, differences)
    return _each_once([*found, *(problem for each in survey.lacked for problem in each.problems)])


def _each_once(found: Iterable[Refusal]) -> list[Refusal]:
    return list({each.text: each for each in found}.values())


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


def compared(
    sites: Sequence[SurveyedSite], compare: Callable[[str, Structure, Structure], Iterator[str]]
) -> Iterator[Refusal]:
    """Each site's tables against the first site that carries them."""
    first: dict[str, Structure] = {}
    for each in sites:
        for wanted in each.installation.tables:
            if (structure := each.structure(wanted)) is None:
                continue
            if wanted.name in first:
                yield from of_table(wanted.name, compare(wanted.name, first[wanted.name], structure))
            first.setdefault(wanted.name, structure)


def refuse(survey: Survey, found: Sequence[Refusal], *more: str) -> None:
    """Raise ProvisioningRefused for these, and for the sites that could not be looked at; nothing was written."""
    if found:
        every = list(dict.fromkeys([*(each.text for each in found), *more, *survey.failures]))
        names = {name for each in survey.reached for name in each.installation.names}
        lines = "\n".join(f"  - {line}" for line in grouped(every, names))
        raise ProvisioningRefused(f"nothing was written, because:\n{lines}", problems=tuple(every))
