"""The tombstones of books, and a cleanup of a pair's."""

import time

from concord.databases.postgresql.upkeep.cleanup import clean
from concord.jobs.upkeep import CarryingSite, SiteCleanup
from tests.given.site import Site
from tests.given.two_sites import SYNCHRONIZATION, Pair

TOMBSTONES = 'SELECT id FROM concord."public.book" WHERE deleted ORDER BY id'


def carrying(sites: Pair, *, also: str | None = None) -> list[CarryingSite]:
    """Both sites with the one link that leaves each; `also` is a further link out of London."""
    found = []
    for site, peer, direction in zip(sites.sites, sites.sites[::-1], ("forward", "reverse"), strict=True):
        extra = {also: "newyork"} if also and site is sites.london else {}
        links = {table.name: {f"{SYNCHRONIZATION}/{direction}": peer.name, **extra} for table in sites.tables}
        found.append(CarryingSite(site.access, links, sites.tables))
    return found


def cleaned(
    sites: Pair, *, dry_run: bool = False, min_age_us: int = 0, also: str | None = None
) -> list[SiteCleanup]:
    now = time.time_ns() // 1000
    return list(clean(carrying(sites, also=also), dry_run=dry_run, now_us=now, min_age_us=min_age_us).tables)


def held(site: Site) -> list[int]:
    return [key for (key,) in site.rows(TOMBSTONES)]
