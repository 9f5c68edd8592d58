"""The trigger that starts a replication's run at a commit, on real PostgreSQL, without a triggerer (S2-11, S2-30)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

import pytest
from airflow.models.trigger import Trigger
from airflow.serialization.encoders import encode_trigger
from airflow.triggers.base import BaseEventTrigger

from concord.configuration.configuration import Configuration
from concord.databases.postgresql.log import slot
from concord.databases.postgresql.log import watch as log_watch
from concord.databases.postgresql.log.first_waiting import watched_log
from concord.databases.postgresql.log.frames import Frames, log_connection
from concord.orchestration.dags import commit_trigger, replicate
from concord.orchestration.dags.commit_trigger import CommitTrigger, commit_watchers
from tests.configuration.conftest import parse
from tests.given.configured_replications import BOOKINGS, written
from tests.given.fixtures import replicated
from tests.given.replicated_sites import Replicated
from tests.given.site import LOG_READER, Site

__all__ = ["parse", "replicated"]
pytestmark = pytest.mark.airflow

Make = Callable[..., Replicated]
Parse = Callable[[str], Configuration]
Fired = asyncio.Queue[str]
NAME = "to_capetown"
TABLE = ("CREATE TABLE note (id int PRIMARY KEY, said text)",)


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_trigger, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(commit_trigger, "_REST", 0.0)


def trigger_of(sites: Replicated, monkeypatch: pytest.MonkeyPatch) -> CommitTrigger:
    """As the triggerer makes it, from what is stored; its connections are the sites'."""
    named = {site.name: site for site in sites.sites}
    monkeypatch.setattr(
        commit_trigger, "credentials", lambda name, insecure: named[name].credentials(LOG_READER)
    )
    publishers = [site.name for site in sites.sites][: 2 if sites.definition.both_ways else 1]
    made = CommitTrigger(
        replication=sites.name,
        replication_set="operations",
        publishers=publishers,
        connections=publishers,
        insecure=[],
        poll=0.05,
    )
    _, kept = made.serialize()
    return CommitTrigger(**json.loads(json.dumps(kept)))


@asynccontextmanager
async def running(trigger: CommitTrigger) -> AsyncIterator[Fired]:
    """The publishers of the trigger's events, until it is cancelled, as Airflow does."""
    fired: Fired = asyncio.Queue()

    async def listen() -> None:
        async for event in trigger.run():
            fired.put_nowait(event.payload["publisher"])

    task = asyncio.create_task(listen())
    try:
        yield fired
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def done(act: Callable[..., object], *arguments: object) -> None:
    await asyncio.to_thread(act, *arguments)


async def soon(fired: Fired) -> str:
    return await asyncio.wait_for(fired.get(), 10)


async def silent(fired: Fired) -> bool:
    """For as long as several looks take."""
    await asyncio.sleep(0.5)
    return fired.empty()


def test_a_commit_starts_one_run_and_the_next_commit_another(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the log is looked at before the run has read it; and never because of other tables."""
    sites = replicated(TABLE, "public.note")
    sites.initialize()

    async def story() -> None:
        async with running(trigger_of(sites, monkeypatch)) as fired:
            await done(sites.london.run, "CREATE TABLE other AS SELECT n FROM generate_series(1, 5000) n")
            assert await silent(fired)
            for id in (1, 2):
                await done(sites.london.run, f"INSERT INTO note VALUES ({id}, 'new')")
                assert await soon(fired) == "london"
                await done(sites.london.run, f"UPDATE note SET said = 'more' WHERE id = {id}")
                assert await silent(fired)
                await done(sites.run)
                assert await silent(fired)

    asyncio.run(story())
    assert sites.are_equal()


def test_a_log_that_has_not_grown_is_not_read_again(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = replicated(TABLE, "public.note")
    sites.initialize()
    read = []
    known = log_watch.first_waiting
    monkeypatch.setattr(log_watch, "first_waiting", lambda *about: read.append(1) or known(*about))
    watch = log_watch.Watch(sites.london.credentials(LOG_READER), watched_log(sites.job()))
    for _ in range(20):
        assert watch.look() is None
    watch.close()
    assert 1 <= len(read) < 10, "the server itself writes a record now and then"


def test_what_a_run_leaves_waiting_starts_another_later_and_later(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that stops the replication is tried again, in case somebody has mended the table."""
    monkeypatch.setattr(commit_trigger, "FIRST_REPEAT", 0.4)
    sites = replicated(TABLE, "public.note")
    sites.initialize()

    async def story() -> list[float]:
        clock, came = asyncio.get_running_loop().time, []
        async with running(trigger_of(sites, monkeypatch)) as fired:
            await done(sites.london.run, "INSERT INTO note VALUES (1, 'waits')")
            while len(came) < 4:
                await soon(fired)
                came.append(clock())
        return came

    first, second, third, fourth = asyncio.run(story())
    assert second - first >= 0.35
    assert third - second >= 0.75
    assert fourth - third >= 1.5


def test_both_sites_commits_start_runs_and_what_was_replayed_starts_none(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = replicated(TABLE, "public.note", updates="both")
    sites.initialize_both_ways()

    async def story() -> None:
        async with running(trigger_of(sites, monkeypatch)) as fired:
            for id, site in enumerate(sites.sites):
                await done(site.run, f"INSERT INTO note VALUES ({id}, 'of {site.name}')")
                assert await soon(fired) == site.name
                await done(sites.run_both)
                assert await silent(fired)

    asyncio.run(story())
    assert sites.are_equal()


def test_a_publisher_that_ends_its_sessions_is_watched_again_and_one_line_says_so(
    replicated: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sites = replicated(TABLE, "public.note")
    sites.initialize()

    async def story() -> None:
        async with running(trigger_of(sites, monkeypatch)) as fired:
            await done(watched, sites.london)
            await done(sites.london.run, ENDING)
            await done(sites.london.run, "INSERT INTO note VALUES (1, 'new')")
            assert await soon(fired) == "london"

    asyncio.run(story())
    said = [each.getMessage() for each in caplog.records if each.name == "concord.watch"]
    assert all("commits of london start no run now" in each and "\n" not in each for each in said)


ENDING = (
    "SELECT count(pg_terminate_backend(pid, 2000)) FROM pg_stat_activity WHERE application_name = 'concord watch'"
    " AND datname = current_database() AND backend_type = 'client backend'"
)
WATCHING = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'concord watch'"
    " AND datname = current_database()"
)


def watched(site: Site) -> None:
    while not site.value(WATCHING):
        pass


def test_a_run_takes_the_log_from_whoever_only_looks_at_it(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is taken again before the run has it."""

    sites = replicated(TABLE, "public.note")
    sites.initialize()
    sites.london.run("INSERT INTO note VALUES (1, 'waits')")
    release, others = slot.release, []

    def release_too_early(control: object, name: str) -> None:
        release(control, name)  # type: ignore[arg-type]
        if not others:
            others.append(stack.enter_context(log_connection(sites.london.credentials(LOG_READER), "looks")))
            Frames(others[0]).start(name, 0, "concord_operations", binary=False)

    with ExitStack() as stack:
        monkeypatch.setattr(slot, "release", release_too_early)
        assert sites.run().entries == 1
        assert len(others) == 1


def test_a_watched_replication_runs_by_its_schedule_and_by_its_asset_and_its_runs_linger(
    parse: Parse,
) -> None:
    watched = BOOKINGS | {"watch": "{poll: 3 s, linger: 45 s}", "schedule": '"@hourly"'}
    configuration = parse(written(**{NAME: watched}))
    dag = replicate.replicate_dag(configuration, NAME)
    [asset] = dag.timetable.asset_condition.objects
    assert [watcher.name for watcher in asset.watchers] == [f"commits__{NAME}"]
    assert "soon after a commit" in str(dag.doc_md)
    assert configuration.replications[NAME].stays == {"linger": 45.0}
    assert (dag.max_active_runs, configuration.replications[NAME].watch is None) == (1, False)


def test_airflow_stores_connections_alone_and_knows_the_trigger_again(parse: Parse) -> None:
    configuration = parse(written(**{NAME: BOOKINGS | {"watch": "{}"}}))
    [watcher] = commit_watchers(configuration, NAME)
    classpath, kept = watcher.trigger.serialize()
    assert classpath == "concord.orchestration.dags.commit_trigger.CommitTrigger"
    assert kept == {
        "replication": NAME,
        "replication_set": "bookings",
        "publishers": ["london"],
        "connections": ["london_log"],
        "insecure": [],
        "poll": 2.0,
    }
    parsed = encode_trigger(watcher.trigger)
    stored = Trigger(classpath=parsed["classpath"], kwargs=parsed["kwargs"])
    assert BaseEventTrigger.hash(stored.classpath, stored.kwargs) == BaseEventTrigger.hash(
        parsed["classpath"], parsed["kwargs"]
    )
    assert commit_watchers(parse(written(**{NAME: BOOKINGS})), NAME) == []
