"""Marks kept by the application at three sites in a ring, each with a clock of its own (F18, F19, F22)."""

import random
import time
from collections.abc import Callable, Iterator

import pytest

from concord.databases.postgresql.upkeep.cleanup import clean
from concord.tables.replication_set import ReplicatedTable
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on
from tests.given.many_sites import Network, ring
from tests.given.marked_sites import (
    CAPE_TOWN,
    LOCAL_SECONDS,
    MARKS,
    MICROSECONDS,
    MILLISECONDS,
    SHADOW,
    TABLE,
    Clock,
    Shop,
    table_with,
)
from tests.given.site import Site, provision_site

pytestmark = pytest.mark.spark

CLOCKS: dict[str, Clock] = {"london": MICROSECONDS, "oslo": LOCAL_SECONDS, "capetown": MILLISECONDS}
CONTROL = {"concord.site", "concord.synchronization", "concord.link_state", "concord.replicated_table"}
KEYS = range(1, 13)


@pytest.fixture
def shops(
    request: pytest.FixtureRequest, server_with_logins: Server, database: Callable[[], Database]
) -> Iterator[tuple[Network, dict[str, Shop]]]:
    """Three shops with the same twelve customers, every pair of them proven equal."""

    def make_site(name: str) -> Site:
        return site_on(server_with_logins, name, database().name)

    tracking = MARKS.model_copy(update={"time_zone": {"oslo": CAPE_TOWN}})
    tables = (ReplicatedTable(table=TABLE, tracking=tracking),)
    sites = {name: make_site(name) for name in CLOCKS}
    for name, site in sites.items():
        here = f" AT TIME ZONE '{CAPE_TOWN}'" if name == "oslo" else ""
        site.run(
            table_with(CLOCKS[name]),
            f"INSERT INTO customer SELECT n, 'common', timestamptz '2026-01-02 03:04:05+00'{here}, false"
            f" FROM generate_series(1, {len(KEYS)}) n",
        )
        provision_site(site, tables)
    made = Network(ring(*CLOCKS), sites, tables, lambda: request.getfixturevalue("spark"), make_site)
    for pair in made.topology.pairs:
        made.initialize(*pair)
    yield made, {name: Shop(site, CLOCKS[name]) for name, site in sites.items()}
    for site in sites.values():
        site.connection.close()


def agree(network: Network) -> list[tuple[object, ...]]:
    """Every site shows the same rows under the same versions; returns them."""
    first, *others = (
        [*site.rows("SELECT id, note, is_deleted FROM customer ORDER BY id")] for site in network.sites
    )
    assert others == [first] * 2
    version = f"SELECT id, origin, changed_at, derived, vector, deleted FROM {SHADOW} ORDER BY id"
    here, *there = (site.rows(version) for site in network.sites)
    assert there == [here] * 2
    return first


def quiet(network: Network) -> None:
    """A further round writes nothing, by the databases' own counters (rule 12)."""
    before = [site.writes() for site in network.sites]
    assert [report.total("acquired") for report in network.round()] == [0] * 6
    for site, then in zip(network.sites, before, strict=True):
        assert {table for table, count in site.writes().items() if count != then[table]} <= CONTROL


def test_all_agree_no_edit_is_lost_and_nothing_goes_round(
    shops: tuple[Network, dict[str, Shop]], request: pytest.FixtureRequest
) -> None:
    network, at = shops
    dice = random.Random(str(request.config.getoption("hypothesis_seed")))
    read: dict[str, str] = {}  #: an edit's note → the note that it replaced
    for number in range(60):
        name = dice.choice(list(at))
        key, step = dice.choice(KEYS), dice.choice(["update", "update", "delete", "bring_back"])
        note = f"{name} {number}"
        present = at[name].row(key)
        assert present is not None
        read[note] = present[0]
        at[name].write(key, note, step)
        if number % 6 == 0:
            network.run(*dice.choice(network.topology.links))
    links = list(network.topology.links)
    for _ in range(2):  # twice the diameter
        dice.shuffle(links)
        network.round(links)
    final = {str(note) for _, note, _ in agree(network)}
    lost = {conflict["loser_row"]["note"] for conflict in network.conflicts()}
    assert set(read) <= final | lost | set(read.values())
    quiet(network)
    for name in at:  # a row that comes back from a coarser site is no edit
        at[name].site.run("UPDATE concord.link_state SET history = jsonb_build_array(history -> -1)")
    before = [site.writes()["public.customer"] for site in network.sites]
    assert sum(report.total("acquired") for report in network.round()) > 0
    assert [site.writes()["public.customer"] for site in network.sites] == before


def test_a_flagged_row_goes_from_all_three_when_every_link_has_passed_it(
    shops: tuple[Network, dict[str, Shop]],
) -> None:
    network, at = shops
    at["oslo"].delete(1)
    assert _removed(network) == [0, 0, 0]
    network.round()
    network.round()
    at["capetown"].bring_back(1, "again")
    assert _removed(network) == [0, 0, 0], "its flag was taken back at one of them"
    at["london"].delete(2)
    network.settle()
    assert _removed(network) == [1, 1, 1]
    rows = agree(network)
    assert [row[:2] for row in rows if row[0] in (1, 2)] == [(1, "again")]
    quiet(network)


def _removed(network: Network) -> list[int]:
    reports = clean(network.carrying(), dry_run=False, now_us=time.time_ns() // 1000, min_age_us=0).tables
    assert [report.problem for report in reports] == [None] * 3
    return [report.removed for report in reports]
