"""The sites that are to be provisioned, looked at through their installers.

A site that does not answer is left out and named at the end; it never stops the others (S4-176).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from concord.databases.contract.surveyed_site import Installation, Lacked, SurveyedSite
from concord.databases.registry import dialect
from concord.messages.errors import ConcordError, SiteUnavailable


@dataclass(frozen=True, slots=True)
class Survey:
    """The sites that answer, and what was wrong with the others."""

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
        """One line a site, each beginning with its name. Those that are shut out are refused by what they lack."""
        return [
            error.message if error.message.startswith(f"{site}:") else f"{site}: {error.message}"
            for site, error in self.failed.items()
            if site not in self.shut_out
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
def surveyed(installations: Sequence[Installation]) -> Iterator[Survey]:
    """Every site looked at, through its installer."""
    with ExitStack() as stack:
        survey = Survey()
        for each in installations:
            try:
                look_at = dialect(each.installer.dialect).provisioning.survey
                survey.reached.append(look_at(each, stack))
            except ConcordError as error:
                survey.failed[each.site] = error
        yield survey
