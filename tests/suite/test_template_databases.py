"""Databases that are copied from provisioned templates: each is a site of its own, as if it had been provisioned."""

import time

from concord.databases.postgresql.provision import site_statements
from concord.databases.postgresql.sites import owner, state
from concord.databases.postgresql.sites.grants import Logins
from tests.given.fixtures import MakePair, capture, over_captures, pair
from tests.given.site import APPLIER, READER, Site
from tests.given.two_sites import Pair

__all__ = ["capture", "pair"]

ITEM = (
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.item (id int PRIMARY KEY, note text)",
    "INSERT INTO shop.item VALUES (1, 'common')",
)


def provisioned(site: Site, sites: Pair) -> state.SiteState:
    return state.read_site(site.connection, site.name, sites.tables, time.time(), Logins(READER, APPLIER))


@over_captures
def test_a_copy_has_all_that_provisioning_gives(pair: MakePair) -> None:
    pair(*ITEM)
    sites = pair(*ITEM)
    for site in sites.sites:
        found = provisioned(site, sites)
        assert list(site_statements.check(found)) == []
        assert list(site_statements.surplus_rights(site.connection, found, Logins(READER, APPLIER))) == []
        assert found.owner == owner.role(site.database)
        standing = owner.read(site.connection, found.facts, found.owner)
        assert [*owner.problems(standing), *owner.deviations(standing)] == []


@over_captures
def test_links_run_between_copies_and_leave_no_trace_in_the_next_ones(pair: MakePair) -> None:
    for _ in range(2):
        sites = pair(*ITEM)
        sites.london.as_application("UPDATE shop.item SET note = 'london'")
        sites.capetown.as_application("INSERT INTO shop.item VALUES (2, 'capetown')")
        sites.settle()
        assert sites.equal
        assert sites.london.rows("SELECT * FROM shop.item ORDER BY id") == [(1, "london"), (2, "capetown")]


def test_copies_that_exist_at_a_time_have_different_identities(pair: MakePair) -> None:
    both = [site for sites in (pair(*ITEM), pair(*ITEM)) for site in sites.sites]
    identities = {str(site.value("SELECT identity FROM concord.site")) for site in both}
    assert len(identities) == len(both)
