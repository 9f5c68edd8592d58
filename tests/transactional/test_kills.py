"""A run that is killed anywhere, and a server that crashes: every entry is replayed once, in order (S0-10)."""

import os
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
import pytest

from concord.databases.postgresql.entries import from_log
from concord.jobs.link import Direction
from concord.messages.errors import ConcordError, SitesDiffer, SubscriberInvalid
from embedded.postgres import Server
from tests.given.at_step import At
from tests.given.killed_process import killed_at
from tests.given.releases import release_of
from tests.given.replicated_sites import STEPS, Replicated, begin_replicated
from tests.given.site import Site, create_logins

JOURNAL = ("CREATE TABLE journal (id int PRIMARY KEY, said text)",)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_log, "OPERATIONS", 10)


def write(sites: Replicated, count: int = 60) -> None:
    for _ in range(count):
        sites.london.run("INSERT INTO journal SELECT count(*), 'entry ' || count(*) FROM journal")


def replayed_once(sites: Replicated, count: int) -> None:
    """All of them; an entry that was replayed twice would be counted twice, and find its row."""
    assert sites.are_equal()
    [(entries_, conversions)] = sites.capetown.rows("SELECT entries, conversions FROM concord.replay")
    assert (entries_, conversions) == (count, 0)


@pytest.mark.parametrize(
    ("step", "occurrence", "capture"),
    [*((*each, "log") for each in STEPS), *((*each, "triggers") for each in STEPS if each[1] > 1)],
)
def test_a_killed_run_is_gone_on_with(
    replicated: Callable[..., Replicated], step: str, occurrence: int, capture: str
) -> None:
    sites = replicated(JOURNAL, "public.journal", capture=capture)
    sites.initialize()
    write(sites)
    assert killed_at(step, sites.run, occurrence)
    write(sites, 5)
    sites.run()
    replayed_once(sites, 65)


@pytest.mark.parametrize("capture", ["log", "triggers"])
@pytest.mark.parametrize("step", ["slot", "copy"])
def test_a_killed_initialization_leaves_nothing_and_is_repeated(
    replicated: Callable[..., Replicated], step: str, capture: str
) -> None:
    sites = replicated(JOURNAL, "public.journal", capture=capture)
    write(sites, 5)
    assert killed_at(step, partial(sites.run, initialize=True))
    assert sites.capetown.value("SELECT count(*) FROM journal") == 0
    sites.initialize()
    write(sites, 5)
    sites.run()
    replayed_once(sites, 5)


@pytest.mark.parametrize("capture", ["log", "triggers"])
@pytest.mark.parametrize("step", ["slot", "copy", "confirm"])
def test_a_killed_copy_of_a_replication_that_runs_leaves_it_to_go_on(
    replicated: Callable[..., Replicated], step: str, capture: str
) -> None:
    """Before its commit nothing has changed, and after it the copy stands; each entry is replayed once."""
    sites = replicated(JOURNAL, "public.journal", capture=capture)
    sites.initialize()
    write(sites, 3)
    sites.run()
    write(sites, 2)
    assert killed_at(step, partial(sites.run, initialize=True, replace=True))
    write(sites, 4)
    assert sites.run().entries == (4 if step == "confirm" else 6)
    assert sites.are_equal()
    sites.initialize(replace=True)
    write(sites, 1)
    assert sites.run().entries == 1
    assert sites.are_equal()


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_a_refused_copy_of_a_replication_that_runs_leaves_it_to_go_on(
    replicated: Callable[..., Replicated], capture: str
) -> None:
    sites = replicated(JOURNAL, "public.journal", capture=capture)
    sites.initialize()
    write(sites, 3)
    sites.run()
    with pytest.raises(SitesDiffer):
        sites.initialize()
    write(sites, 2)
    assert sites.run().entries == 2
    assert sites.are_equal()


BOTH = [
    ("slot", 1, {"updates": "both"}),
    ("copy", 1, {"updates": "both"}),
    ("copy", 1, {"updates": "queued"}),
]


@pytest.mark.parametrize(("step", "occurrence", "settings"), BOTH)
def test_a_killed_copy_leaves_both_directions_to_go_on(
    replicated: Callable[..., Replicated], step: str, occurrence: int, settings: dict[str, str]
) -> None:
    sites = replicated(JOURNAL, "public.journal", **settings)
    sites.initialize_both_ways()
    write(sites, 2)
    sites.capetown.run("INSERT INTO journal VALUES (100, 'Cape Town')")
    assert killed_at(step, partial(sites.initialize_both_ways, replace=True), occurrence)
    assert [each.entries for each in sites.run_both()] == [2, 1]
    assert sites.are_equal()


def test_a_way_back_whose_log_tells_of_rows_that_the_copy_replaced_refuses_to_run(
    replicated: Callable[..., Replicated],
) -> None:
    """Killed between the two commits: replayed, that log would give London what Cape Town no longer has."""
    sites = replicated(JOURNAL, "public.journal", updates="both")
    sites.initialize_both_ways()
    write(sites, 2)
    sites.capetown.run("INSERT INTO journal VALUES (100, 'Cape Town')")
    assert killed_at("confirm", partial(sites.initialize_both_ways, replace=True))
    assert sites.run().entries == 0
    with pytest.raises(SubscriberInvalid, match="it was being initialized"):
        sites.run(direction=Direction.REVERSE)
    sites.initialize_both_ways(replace=True)
    sites.capetown.run("INSERT INTO journal VALUES (101, 'Cape Town')")
    assert [each.entries for each in sites.run_both()] == [0, 1]
    assert sites.are_equal()


@pytest.fixture(scope="module")
def two_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Each may crash; what they have committed is on disk."""
    settings, folder = {"wal_level": "logical"}, tmp_path_factory.mktemp("crashing")
    with (
        Server.create(folder / "london", version=release_of("london"), settings=settings) as london,
        Server.create(folder / "capetown", version=release_of("capetown"), settings=settings) as capetown,
    ):
        for server in (london, capetown):
            with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
                create_logins(superuser)
        yield london, capetown


def site_on(server: Server, name: str) -> Site:
    database = f"{name}_{os.urandom(6).hex()}"
    server.create_database(database)
    return Site(name, server.host, server.port, database, server.superuser, server.password)


@pytest.mark.parametrize("which", [0, 1], ids=["publisher", "subscriber"])
@pytest.mark.parametrize(
    ("step", "occurrence", "capture"),
    [
        ("replay", 3, "log"),
        ("replay", 3, "triggers"),
        pytest.param("stage", 2, "log", marks=pytest.mark.long),
        pytest.param("confirm", 3, "log", marks=pytest.mark.long),
    ],
)
def test_a_server_that_crashes_during_a_run_loses_nothing(
    two_servers: tuple[Server, Server], which: int, step: str, occurrence: int, capture: str
) -> None:
    """The subscriber commits without waiting for its disk, and the publisher's slot may go back: the level decides."""
    ends = map(site_on, two_servers, ("london", "capetown"))
    sites = begin_replicated(*ends, JOURNAL, "public.journal", capture=capture)
    sites.initialize()
    write(sites)

    def crash() -> None:
        two_servers[which].crash()
        two_servers[which].start()

    with pytest.raises(ConcordError):
        sites.run(At(step, crash, occurrence))
    for site, server in zip(sites.sites, two_servers, strict=True):
        site.connection.close()
        site.port = server.port
        site.connection = site.log_in(site.superuser)
    write(sites, 5)
    sites.run()
    replayed_once(sites, 65)
    for site in sites.sites:
        site.drop_slots()
        site.connection.close()
