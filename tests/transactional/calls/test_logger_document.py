"""The worked example of docs/counters.md: its configuration, its tables, and its two first hits."""

import re
from collections.abc import Callable, Iterator

import pytest

from concord.configuration.configuration import Configuration
from embedded.postgres import Server
from tests.conftest import PROJECT, Database
from tests.given.fixtures import site_on
from tests.given.logger_nodes import LOGGER, Nodes
from tests.given.replicated_sites import Replicated, drop_slots
from tests.given.site import Site

TEXT = (PROJECT / "docs" / "counters.md").read_text()


@pytest.fixture
def sites(server_with_logins: Server, database: Callable[[], Database]) -> Iterator[dict[str, Site]]:
    names = ("london", "capetown", "oslo", "quito")
    made = {name: site_on(server_with_logins, name, database().name) for name in names}
    yield made
    for site in made.values():
        drop_slots(site)
        site.connection.close()


def test_four_nodes_count_two_first_hits_as_two(
    sites: dict[str, Site], parse: Callable[[str], Configuration]
) -> None:
    """S4-173, S4-174, S4-175: one configuration for all nodes, with a replication from each to each other one."""
    made, *hits = re.findall(r"```sql\n-- at ([\w ]+)\n(.*?)```", TEXT, re.DOTALL)
    [settings] = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    configuration = parse(settings)
    for site in sites.values():
        site.run(made[1])
    nodes = Nodes(list(sites.values()))
    for name, each in configuration.replications.items():
        of = configuration.replication(name)
        assert (of.tables, each.directions) == ((), ((each.publisher, each.subscriber),))
    nodes.ways = [
        Replicated(
            sites[each.publisher],
            sites[each.subscriber],
            (),
            name,
            {"procedures": each.procedures},
            each.replication_set,
        )
        for name, each in configuration.replications.items()
    ]
    nodes.provision()
    for way in nodes.ways:
        way.initialize()
    for where, hit in hits:
        sites[where].run(hit)
    nodes.run_all()
    assert nodes.counted() == [([("10.0.0.1", 2)], [("ann", 2)])] * 4


def test_the_logger_of_other_tests_is_the_one_of_the_page() -> None:
    [made] = re.findall(r"```sql\n-- at each node\n(.*?)```", TEXT, re.DOTALL)
    assert made.split() == f"{'; '.join(LOGGER)};".split()
