"""Two sites that are not provisioned yet, and how provisioning is asked for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from concord.databases.provisioning import Installation
from concord.tables.replication_set import ReplicatedTable
from tests.given.site import APPLIER, LOG_READER, READER, Site, every_table


@dataclass(frozen=True)
class Bare:
    """London and Cape Town as their owners have them, Concord not yet there."""

    london: Site
    capetown: Site

    @property
    def sites(self) -> tuple[Site, Site]:
        return (self.london, self.capetown)

    def run(self, *statements: str) -> None:
        for site in self.sites:
            site.run(*statements)

    def installations(
        self, tables: Sequence[ReplicatedTable] | None = None, **changed: object
    ) -> list[Installation]:
        """The tables that both sites are to carry: all unless some are named."""
        return [installation(site, tables or every_table(site), **changed) for site in self.sites]


MakeBare = Callable[[], Bare]


def installation(site: Site, tables: Sequence[ReplicatedTable], **changed: object) -> Installation:
    by_log = {"log_reader": LOG_READER, "reads_log": site.credentials(LOG_READER)} if site.by_log else {}
    fields = {"reader": READER, "applier": APPLIER, "tables": tuple(tables), **by_log} | changed
    return Installation(site=site.name, installer=site.credentials(site.superuser), **fields)  # type: ignore[arg-type]
