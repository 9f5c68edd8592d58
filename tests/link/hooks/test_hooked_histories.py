"""Three real sites whose hooks change what they are shown: all hold the same in the end (S2-24, S3-13)."""

import random
from contextlib import suppress

import pytest

from concord.jobs.link import SPARK_FROM
from concord.rules.policy import Policy
from tests.given.at_step import At
from tests.given.fixtures import MakeNetwork
from tests.given.hooked_pair import BOOKS, COLUMNS, audit, hook, hooked_tables
from tests.given.many_sites import Network, Topology, hub, ring
from tests.given.site import provision_site

AUDIT = "CREATE TABLE audit (n int GENERATED ALWAYS AS IDENTITY, book int, operation text, old numeric, new numeric)"


class Killed(BaseException):
    """The driver is gone."""


def die() -> None:
    raise Killed


def hooked(network: Network, policy: Policy) -> Network:
    names = network.topology.sites
    hooks = {name: hook("adds_one") for name in names[1:]} | {names[0]: hook("audits", *COLUMNS)}
    network.tables = hooked_tables(network.tables, hooks, policy)
    for site in network.sites:
        site.run(AUDIT)
        provision_site(site, network.tables)
    return network


def live(network: Network, seed: int) -> None:
    """Edits everywhere, and links of which every third dies somewhere."""
    chance = random.Random(seed)
    for _ in range(24):
        site, key = chance.choice(network.sites), chance.randint(1, 4)
        edit = chance.choice(
            [
                f"UPDATE book SET price = {chance.randint(1, 99)} WHERE id = {key}",
                f"UPDATE book SET title = '{site.name}' WHERE id = {key}",
                f"DELETE FROM book WHERE id = {key}",
                f"INSERT INTO book VALUES ({key}, '{site.name}', 5) ON CONFLICT DO NOTHING",
            ]
        )
        site.run(edit)
        dies = chance.random() < 0.35
        step = At(chance.choice(["hook", "base", "shadow", "commit", "remember"]), die)
        with suppress(Killed):
            link = chance.choice(network.topology.links)
            network.run(*link, at=step if dies else None, spark_from=SPARK_FROM)


def rest(network: Network) -> None:
    """Rounds until one carries nothing; the driver carries all."""
    for _ in range(9):
        reports = [network.run(*link, spark_from=SPARK_FROM) for link in network.topology.links]
        if not any(report.total("acquired") for report in reports):
            return
    raise AssertionError("the sites never come to rest")


@pytest.mark.parametrize(
    ("topology", "resolvers"),
    [
        (hub("oslo", "lima", "cairo"), ("average(price)",)),
        (ring("oslo", "lima", "cairo"), ("latest_timestamp",)),
    ],
    ids=["merging", "ring"],
)
def test_all_sites_end_equal_and_at_rest_no_hook_is_asked(
    network: MakeNetwork, topology: Topology, resolvers: tuple[str, ...]
) -> None:
    sites = hooked(network(topology, *BOOKS), Policy(resolvers=resolvers))
    live(sites, seed=len(resolvers[0]))
    rest(sites)
    contents = [sites.content(name) for name in sites.topology.sites]
    assert contents == [contents[0]] * 3
    heard = len(audit(sites.sites[0]))
    assert heard
    rest(sites)
    assert len(audit(sites.sites[0])) == heard
