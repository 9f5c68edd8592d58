"""The worked example of docs/counters.md: its configuration, its tables, and its two first hits."""

import re
from collections.abc import Callable

from concord.configuration.configuration import Configuration
from tests.conftest import PROJECT
from tests.given.logger_nodes import TABLES, MakeSites, Nodes
from tests.given.replicated_sites import Replicated

TEXT = (PROJECT / "docs" / "counters.md").read_text()


def test_four_nodes_count_two_first_hits_as_two(
    make_sites: MakeSites, parse: Callable[[str], Configuration]
) -> None:
    """S4-173, S4-174, S4-175: one configuration for all nodes, with a replication from each to each other one."""
    made, *hits = re.findall(r"```sql\n-- at ([\w ]+)\n(.*?)```", TEXT, re.DOTALL)
    [settings] = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    configuration = parse(settings)
    sites = {site.name: site for site in make_sites(4)}
    for site in sites.values():
        site.run(made[1])
    for name, each in configuration.replications.items():
        of = configuration.replication(name)
        assert (of.tables, each.directions) == ((), ((each.publisher, each.subscriber),))
    ways = [
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
    nodes = Nodes(list(sites.values()), ways)
    nodes.begin()
    for where, hit in hits:
        sites[where].run(hit)
    nodes.run_all()
    assert nodes.counted() == [([("10.0.0.1", 2)], [("ann", 2)])] * 4


def test_the_logger_of_other_tests_and_of_the_benchmark_is_the_one_of_the_page() -> None:
    [made] = re.findall(r"```sql\n-- at each node\n(.*?)```", TEXT, re.DOTALL)
    assert made.split() == f"{'; '.join(TABLES)};".split()
