"""The logger: nodes that count hits, each for all, and replay each other's calls. Counters add up on any mesh."""

import random
from collections import Counter

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.replication import standing
from tests.given.killed_process import killed_at
from tests.given.logger_nodes import MakeNodes, MakeSites, begin_nodes
from tests.given.replicated_sites import STEPS


@pytest.fixture
def nodes(make_sites: MakeSites) -> MakeNodes:
    """Call it with a number of nodes."""
    return lambda many: begin_nodes(make_sites(many))


def test_two_first_hits_of_one_key_are_two(nodes: MakeNodes) -> None:
    """S4-173, S4-174: the operation travels, and none comes back."""
    logger = nodes(3)
    for site in logger.sites[:2]:
        logger.hit(site, "10.0.0.1", "ann")
    for _ in range(2):
        logger.run_all()
        assert logger.counted() == [([("10.0.0.1", 2)], [("ann", 2)])] * 3
    assert provisioning.check(logger.installations()) == []


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_every_node_counts_every_hit_whichever_links_are_killed(nodes: MakeNodes, seed: int) -> None:
    """S4-173: hits at random nodes, and a run that is killed at a random step after each few of them."""
    logger, chance = nodes(3), random.Random(seed)
    addresses, persons, kills = Counter[str](), Counter[str](), 0
    for number in range(90):
        address, person = f"10.0.0.{chance.randrange(5)}", f"person {chance.randrange(3)}"
        logger.hit(chance.choice(logger.sites), address, person)
        addresses[address] += 1
        persons[person] += 1
        if number % 6 == 0:
            step, occurrence = chance.choice(STEPS)
            kills += killed_at(step, chance.choice(logger.ways).run, occurrence)
    assert kills >= 3, "some have less to do than their step needs"
    logger.run_all()
    assert logger.counted() == [(sorted(addresses.items()), sorted(persons.items()))] * 3


def test_a_hit_is_counted_on_both_its_counters_or_on_neither(nodes: MakeNodes) -> None:
    """S4-173: of two serializable transactions that hit one key at once, one is undone as a whole, and made again."""
    logger = nodes(2)
    london = logger.sites[0]
    hit = "SELECT concord.call('public.hit', '10.0.0.1', '{}')"
    with (
        london.log_in(london.superuser, autocommit=False) as first,
        london.log_in(london.superuser, autocommit=False) as second,
    ):
        for user in (first, second):
            user.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            user.execute("SELECT count(*) FROM hits_of_person")
        first.execute(hit.format("ann").encode())
        first.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            second.execute(hit.format("bob").encode())
        second.rollback()
        second.execute(hit.format("bob").encode())
        second.commit()
    logger.run_all()
    assert logger.counted() == [([("10.0.0.1", 2)], [("ann", 1), ("bob", 1)])] * 2


def test_a_node_that_cannot_follow_has_a_backlog_and_catches_up_by_itself(nodes: MakeNodes) -> None:
    """S4-180: no feed is cut, users hit it and the others meanwhile, and its next runs end the backlog."""
    logger = nodes(3)
    london, _, oslo = logger.sites
    late = next(way for way in logger.ways if (way.london, way.capetown) == (london, oslo))
    held = oslo.log_in(oslo.superuser, autocommit=False)
    logger.hit(oslo, "10.0.0.1", "ann")
    held.execute(b"LOCK TABLE hits_of_address")
    for _ in range(40):
        logger.hit(london, "10.0.0.1", "ann")
    for way in logger.ways:
        if way.capetown is not oslo:
            way.run()

    job = late.job()
    level = standing.level(job)
    assert level
    log = standing.kept_log(job, level.number)
    assert log
    assert log.waits
    assert log.behind > 0

    held.rollback()
    held.close()
    logger.run_all()
    assert logger.counted() == [([("10.0.0.1", 41)], [("ann", 41)])] * 3
    level = standing.level(job)
    assert level
    done = standing.kept_log(job, level.number)
    assert done
    assert not done.waits
