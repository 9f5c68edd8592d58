"""People's preferences at London, and at Cape Town, whose changes are heard later."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import Rows

#: A person may have a nickname, which no other has.
PREFERENCE = (
    "CREATE TABLE preference (person int PRIMARY KEY, colour text, size numeric, nickname int UNIQUE)",
)
#: Of all rows that ever were, the deleted ones included.
_VERSIONS = 'SELECT {key}, origin, changed_at, derived, deleted FROM concord."{table}" ORDER BY 1'
VERSIONS = _VERSIONS.format(key="person", table="public.preference")


def preferences(replicated: Make, **conflict: object) -> Replicated:
    """Those of ten people at both sites, initialized."""
    made = replicated(PREFERENCE, "public.preference", updates="queued", conflict=conflict)
    made.london.run("INSERT INTO preference SELECT n, 'colour ' || n, n FROM generate_series(1, 10) n")
    made.initialize_both_ways()
    return made


@contextmanager
def hub(
    replicated: Make, server: Server, database: Callable[[], Database], **conflict: object
) -> Iterator[tuple[Replicated, Replicated]]:
    """The same with a second spoke, Oslo."""
    spoke = preferences(replicated, **conflict)
    oslo = site_on(server, "capetown", database().name)
    oslo.run(*PREFERENCE)
    other = Replicated(spoke.london, oslo, spoke.tables, f"{spoke.name}2", spoke.settings)
    other.provision()
    try:
        other.initialize_both_ways()
        yield spoke, other
    finally:
        oslo.drop_slots()
        oslo.connection.close()


def preference(sites: Replicated, person: int) -> tuple[Rows, Rows]:
    """One person's row at London and at Cape Town."""
    one, other = (
        site.rows(f"SELECT colour, size FROM preference WHERE person = {person}") for site in sites.sites
    )
    return one, other


def settle(sites: Replicated) -> None:
    """Until both have heard of everything."""
    for _ in range(12):
        if not any(each.operations for each in sites.run_both()):
            return
    raise AssertionError("the sites tell each other something for ever")


def are_alike(sites: Replicated, key: str = "person") -> bool:
    """In content and in versions."""
    versions = _VERSIONS.format(key=key, table=sites.tables[0].name)
    london, capetown = (site.rows(versions) for site in sites.sites)
    return london == capetown and sites.are_equal()
