"""What counts as the history of a row: no key that was only locked, and an insert no longer than until all know it."""

from dataclasses import replace

import pytest

from concord.policy import Policy
from tests.link.conftest import MakePair
from tests.link.pair import Pair, provision_site
from tests.link.plain_link import carry, settle

RESOLVERS = ("latest_timestamp", "earliest_timestamp", "delete_wins", "hold")


def governed(sites: Pair, *policies: Policy) -> Pair:
    """The pair with a policy for each table, both sites brought up to what it needs."""
    tables = tuple(
        table.model_copy(update={"policy": policy})
        for table, policy in zip(sites.tables, policies, strict=True)
    )
    for site in sites.sites:
        provision_site(site, tables)
    return replace(sites, tables=tables)


@pytest.mark.spark
def test_a_key_that_a_refused_insert_has_locked_is_nobodys_delete(pair: MakePair) -> None:
    """Under no resolver: the row stays, no conflict is logged, and nothing is held."""
    made = pair(*(f"CREATE TABLE {name} (id int PRIMARY KEY, title text, price int)" for name in RESOLVERS))
    sites = governed(made, *(Policy(resolvers=(name,)) for name in RESOLVERS))
    for name in RESOLVERS:
        sites.capetown.run(f"ALTER TABLE {name} ADD CONSTRAINT cheap CHECK (price < 100)")
        sites.london.run(f"INSERT INTO {name} VALUES (30, 'dear', 900)")
    carry(sites.job())
    sites.london.run(*(f"UPDATE {name} SET title = 'still dear'" for name in RESOLVERS))
    assert sites.capetown.value('SELECT origin FROM concord."public.hold"') == "", "a locked key"
    assert not any(table.acquired for table in sites.run("reverse").tables)
    for name in RESOLVERS:
        assert sites.london.rows(f"SELECT title FROM {name}") == [("still dear",)]
        sites.capetown.run(f"ALTER TABLE {name} DROP CONSTRAINT cheap")
    settle(sites)
    assert sites.equal
    assert sites.conflicts() == []
    assert [site.value("SELECT count(*) FROM concord.waiting") for site in sites.sites] == [0, 0]
