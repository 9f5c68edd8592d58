"""Any number of sites in any topology of pairs (S1-15, S2-26, T01, F22 to F27).

Random edits at all sites at once, links in random order, edits and other links while one is under way; then rest. An
oracle beside Concord says what each site must hold and log."""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from concord.databases.postgresql.rows.content import Content
from embedded.postgres import Server
from tests.given import version_account
from tests.given.at_step import At
from tests.given.fixtures import MakeNetwork, site_on
from tests.given.many_sites import Link, Network, Topology, begin_network, chain, hub, mesh, ring
from tests.given.random_edits import ITEM, edit, edit_everywhere
from tests.given.site import Site
from tests.link.topologies.known_versions import Fight, Knowledge, as_version

pytestmark = pytest.mark.spark

TOPOLOGIES = (
    hub("oslo", "paris", "quito", "rome"),
    ring("oslo", "paris", "quito", "rome"),
    mesh("oslo", "paris", "quito", "rome"),
    chain("oslo", "paris", "quito", "rome", "seoul"),
)
#: Longer runs: TOPOLOGY_PHASES=50 pytest tests/link/topologies/test_topologies.py
PHASES = int(os.environ.get("TOPOLOGY_PHASES", "2"))
TRANSACTIONS = 100  #: of every site in a phase
ALONE = 30  #: rows that only one site changes, before all the others
CONTROL = {"concord.site", "concord.synchronization", "concord.link_state"}


@dataclass
class Life:
    """A network, what it ought to know, and what was counted while it lived."""

    network: Network
    knowledge: Knowledge
    alone: Counter[str] = field(default_factory=Counter)  #: outcomes of the rows that one site changed alone
    edited: int = 0
    rounds: int = 0  #: until one carried nothing
    contents: list[dict[str, Content]] = field(default_factory=list)
    quiet_writes: set[str] = field(default_factory=set)  #: tables written in the round that carried nothing
    held: dict[str, dict[int, Any]] = field(default_factory=dict)
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    account: list[version_account.Line] = field(default_factory=list)


def run(life: Life, link: Link, between: Callable[[], object] = lambda: None) -> Counter[str]:
    """One link, told to the oracle; `between` happens after it has read its source, and before it writes."""
    source, target = link
    told = life.knowledge.look(source)
    report = life.network.run(source, target, at=At("hold_fence", between))
    life.knowledge.tell(target, told)
    return Counter(
        {count: report.total(count) for count in ("acquired", "applied", "converged", "superseded")}
    )


def one_site_alone(life: Life) -> None:
    """One site changes rows and nobody else does; then all links, along the way and back."""
    first = life.network.topology.sites[0]
    life.network[first].run(
        f"UPDATE item SET token = 'alone ' || id, note = md5('alone ' || id) WHERE id <= {ALONE}"
    )
    for _ in range(2):
        life.alone += sum((run(life, link) for link in life.network.topology.links), Counter[str]())


def everybody(life: Life, chance: random.Random, seed: str) -> None:
    """All sites edit at once, then some links run; while they do, another link runs or an end is edited again."""
    links = life.network.topology.links
    for phase in range(PHASES):
        life.edited += edit_everywhere(life.network.sites, TRANSACTIONS, f"{seed} {phase}")
        for number, link in enumerate(chance.sample(links, len(links) // 2)):
            other = chance.choice([each for each in links if set(each) != set(link)])
            edited = life.network[chance.choice(link)]
            meanwhile = [
                lambda: None,
                partial(run, life, other),
                partial(edit, edited, 10, f"{seed} {phase} {number}"),
            ]
            run(life, link, chance.choice(meanwhile))


def rest(life: Life, chance: random.Random) -> None:
    """Writes have stopped: rounds of all links in random order, until one carries nothing."""
    topology = life.network.topology
    for _ in range(2 * topology.diameter + 1):
        before = {site.name: site.stored for site in life.network.sites}
        order = chance.sample(topology.links, len(topology.links))
        if not sum((run(life, link) for link in order), Counter[str]()):
            break
        life.rounds += 1
    for site in life.network.sites:
        life.quiet_writes |= site.written_since(before[site.name])


@pytest.fixture(scope="module", params=TOPOLOGIES, ids=lambda topology: topology.name)
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    """A network's whole life, lived once for all tests."""
    topology: Topology = request.param
    seed = f"{topology.name} {request.config.getoption('hypothesis_seed')}"
    print(f"seed of the edits and of the order of links: {seed}")  # noqa: T201 - to repeat a run

    def make_site(name: str) -> Site:
        database = f"topology_{topology.name}_{name}"
        server_with_logins.create_database(database)
        return site_on(server_with_logins, name, database)

    network = begin_network(topology, make_site, ITEM, lambda: request.getfixturevalue("spark"))
    version_account.install(network)
    lived = Life(network, Knowledge(network))
    chance = random.Random(seed)
    one_site_alone(lived)
    everybody(lived, chance, seed)
    rest(lived, chance)
    lived.account = version_account.lines(network)
    lived.contents = [network.content(name) for name in topology.sites]
    lived.conflicts = network.conflicts()
    lived.held = {site.name: held(network, site.name) for site in network.sites}
    yield lived
    for site in network.sites:
        site.connection.close()
        server_with_logins.drop_database(site.database)


def held(network: Network, site: str) -> dict[int, Any]:
    rows = network[site].rows('SELECT id, origin, changed_at FROM concord."public.item"')
    return {key: as_version(origin, at) for key, origin, at in rows}


def fought(conflict: dict[str, Any]) -> Fight:
    sides = (conflict[f"{side}_version"] for side in ("winner", "loser"))
    return int(conflict["key"][0]), frozenset(
        as_version(side["origin"], side["changed_at"]) for side in sides
    )


def test_all_sites_are_equal_after_at_most_twice_the_diameter(life: Life) -> None:
    assert life.rounds <= 2 * life.network.topology.diameter
    assert all(content == life.contents[0] for content in life.contents)
    assert life.edited > 120 * len(life.network.sites) * PHASES


def test_every_site_holds_the_newest_version_that_anybody_made(life: Life) -> None:
    newest = {
        key: max(made for each, made in life.knowledge.edits if each == key)
        for key, _ in life.knowledge.edits
    }
    for site in life.network.sites:
        assert life.knowledge.holds(site.name) == newest
        assert life.held[site.name] == newest


def test_a_quiescent_round_writes_no_row_but_the_links_own(life: Life) -> None:
    assert life.quiet_writes == CONTROL


def test_the_conflict_log_of_every_site_is_the_one_that_the_oracle_foresees(life: Life) -> None:
    """Exactly those pairs of versions that met and had not seen each other, each where it was decided."""
    assert life.conflicts
    for site in life.network.sites:
        found = [fought(conflict) for conflict in site.conflicts()]
        assert len(found) == len(set(found))
        assert set(found) == life.knowledge.log[site.name]


def test_a_conflict_found_on_two_paths_has_one_id(life: Life) -> None:
    """F26."""
    ids: dict[Fight, set[str]] = {}
    for conflict in life.conflicts:
        ids.setdefault(fought(conflict), set()).add(conflict["id"])
    assert all(len(each) == 1 for each in ids.values())
    assert len({name for each in ids.values() for name in each}) == len(ids)


def test_every_losing_version_is_in_the_log_and_none_had_seen_the_other(life: Life) -> None:
    assert version_account.unaccounted(life.account, life.network) == []
    assert version_account.needless(life.network) == []


def test_both_images_of_every_conflict_are_whole(life: Life) -> None:
    assert version_account.misrecorded(life.account, life.network) == []
    for conflict in life.conflicts:
        for side in ("winner", "loser"):
            image, origin = conflict[f"{side}_row"], conflict[f"{side}_version"]["origin"]
            assert conflict[f"{side}_site"] == origin.partition("#")[0]
            assert (image is None) == conflict[f"{side}_version"]["deleted"]
            assert image is None or image.keys() == {"id", "token", "note"}


def test_no_version_is_written_twice_at_a_site_or_comes_back_to_where_it_was_made(life: Life) -> None:
    """F23: counted by the databases, whatever the reports say."""
    arrived = Counter(
        (line.site, line.made) for line in life.account if line.by_link and line.made != line.replaced
    )
    arrived = Counter(
        {line: count for line, count in arrived.items() if line[1][1]}
    )  # placeholders have no origin
    assert arrived
    assert {line: count for line, count in arrived.items() if count > 1} == {}
    assert [line for line in arrived if line[1][1].startswith(f"{line[0]}#")] == []
    assert sum(arrived.values()) == life.knowledge.changed
    applied = sum(report.total("applied") for report in life.network.reports)
    assert applied == life.knowledge.changed - life.knowledge.adopted
    assert life.knowledge.adopted, "two sites did the very same thing"


def test_what_one_site_changed_alone_is_applied_once_at_every_other(life: Life) -> None:
    """In a tree nothing else is even sent; where there are two ways, the second finds the row converged."""
    others = len(life.network.sites) - 1
    assert life.alone["applied"] == others * ALONE
    assert life.alone["superseded"] == 0
    assert life.alone["acquired"] == life.alone["applied"] + life.alone["converged"]
    if len(life.network.topology.pairs) == others:
        assert life.alone["converged"] == 0


def test_no_version_steps_back_and_nothing_writes_behind_the_account(life: Life) -> None:
    assert list(version_account.steps_back(life.account)) == []
    assert list(version_account.gaps(life.account)) == []
    assert version_account.changed_contents(life.account) == {}


@pytest.mark.usefixtures("judged")
def test_a_conflict_that_a_third_site_has_settled_meanwhile_is_not_logged_again(network: MakeNetwork) -> None:
    """While oslo's link decides at paris, quito's link tells paris of the very conflict: decided there, for paris."""
    sites = network(mesh("oslo", "paris", "quito"), *ITEM)
    sites["oslo"].run("UPDATE item SET token = 'oslo' WHERE id = 1")
    sites["paris"].run("UPDATE item SET token = 'paris' WHERE id = 1")
    sites.run("oslo", "quito")
    sites.run("paris", "quito")

    report = sites.run("oslo", "paris", at=At("hold_fence", lambda: sites.run("quito", "paris")))

    assert report.total("conflicts") == 0
    assert [len(site.conflicts()) for site in sites.sites] == [0, 0, 1]
    sites.settle()
    assert sites.equal
    assert [len(site.conflicts()) for site in sites.sites] == [0, 0, 1]


def test_every_site_hears_of_a_loser_that_one_site_has_beaten(network: MakeNetwork) -> None:
    """F27: also one that had the winner already; and nobody decides it a second time."""
    sites = network(chain("oslo", "paris", "quito"), *ITEM)
    sites["oslo"].run("UPDATE item SET token = 'oslo' WHERE id = 1")
    sites["paris"].run("UPDATE item SET token = 'paris' WHERE id = 1")
    sites.run("paris", "quito")
    assert sites.run("oslo", "paris").total("lost") == 1
    sites.settle()

    (version,) = sites["paris"].rows(
        'SELECT origin, changed_at, vector FROM concord."public.item" WHERE id = 1'
    )
    assert version[2].keys() == {"oslo#1", "paris#1"}
    for site in sites.sites:
        assert site.rows('SELECT origin, changed_at, vector FROM concord."public.item" WHERE id = 1') == [
            version
        ]
    assert len(sites.conflicts()) == 1


def test_two_links_that_write_the_same_rows_at_once_wait_for_each_other(network: MakeNetwork) -> None:
    """A hub hears from two spokes at the same time: their runs are different synchronizations."""
    sites = network(hub("oslo", "paris", "quito"), *ITEM)
    for name in ("paris", "quito"):
        sites[name].run(
            f"UPDATE item SET token = '{name} ' || id WHERE id <= 20",
            f"INSERT INTO item VALUES (200, '{name} 200')",
            "DELETE FROM item WHERE id BETWEEN 30 AND 40",
        )
    oslo, waited = sites["oslo"], threading.Event()
    second = threading.Thread(target=lambda: sites.run("quito", "oslo"))

    def start_the_second_and_see_it_wait() -> None:
        second.start()
        end = time.monotonic() + 60
        while not waited.is_set() and time.monotonic() < end:
            if oslo.value(
                "SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
            ):
                waited.set()

    sites.run("paris", "oslo", at=At("shadow", start_the_second_and_see_it_wait))
    second.join()

    assert waited.is_set()
    assert len(oslo.conflicts()) == 20 + 1, "the deletes are the same thing"
    sites.settle()
    assert sites.equal
    assert len(sites.conflicts()) == 20 + 1
