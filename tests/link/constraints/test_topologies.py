"""Three sites, each with its own part in a broken constraint: they agree, whatever way the rows come."""

import pytest

from tests.given.broken_constraints import broken
from tests.given.fixtures import MakeNetwork
from tests.given.link_without_spark import carry
from tests.given.many_sites import Network, Topology, chain, mesh

TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY, soft text UNIQUE, hard text NOT NULL UNIQUE)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent)",
    "CREATE TABLE part (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent ON DELETE CASCADE)",
    "INSERT INTO parent SELECT n, 'soft ' || n, 'hard ' || n FROM generate_series(1, 5) n",
)
SITES = ("oslo", "paris", "quito")


def settle(sites: Network) -> None:
    """Rounds until one finds nothing changed; after every link every constraint of every site is true."""
    for _ in range(2 * sites.topology.diameter + 2):
        found = 0
        for link in sites.topology.links:
            found += sum(report.acquired for report in carry(sites.job(*link)).values())
            assert [name for site in sites.sites for name in broken(site)] == []
        if not found:
            return
    raise AssertionError("the sites never come to rest")


@pytest.mark.parametrize("topology", [chain(*SITES), mesh(*SITES)], ids=lambda topology: topology.name)
def test_three_sites_agree_and_every_loser_is_kept(network: MakeNetwork, topology: Topology) -> None:
    sites = network(topology, *TABLES)
    oslo, paris, quito = (sites[name] for name in SITES)
    for number, site in enumerate((oslo, paris, quito)):
        site.run(f"INSERT INTO parent VALUES ({10 + number}, 'one', 'hard {10 + number}')")
    for number, site in enumerate((quito, oslo, paris)):
        site.run(
            f"INSERT INTO parent VALUES ({20 + number}, NULL, 'two')",
            f"INSERT INTO child VALUES ({number}, {20 + number})",
        )
    oslo.run("INSERT INTO child VALUES (10, 1)", "INSERT INTO part VALUES (10, 2)")
    paris.run("INSERT INTO child VALUES (11, 1)", "INSERT INTO part VALUES (11, 2)")
    quito.run("DELETE FROM parent WHERE id IN (1, 2, 3)")

    settle(sites)

    assert sites.equal
    assert oslo.rows("SELECT id, soft FROM parent WHERE id BETWEEN 10 AND 12 ORDER BY 1") == [
        (10, None),
        (11, None),
        (12, "one"),
    ]
    assert oslo.rows("SELECT id FROM parent WHERE hard = 'two'") == [(22,)]
    assert oslo.rows("SELECT * FROM child ORDER BY 1") == [(2, 22), (10, 1), (11, 1)]
    assert oslo.rows("SELECT * FROM part") == []
    assert oslo.rows("SELECT id FROM parent WHERE id < 4") == [(1,)]
    kept = {(entry["type"], entry["table_name"], entry["key"][0]) for entry in sites.conflicts()}
    assert kept >= {
        *(("uniqueness", "public.parent", key) for key in ("10", "11", "20", "21")),
        *(("foreign_key", "public.child", key) for key in ("0", "1")),
        *(("foreign_key", "public.part", key) for key in ("10", "11")),
        ("foreign_key", "public.parent", "1"),
    }
