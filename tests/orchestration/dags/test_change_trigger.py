"""The trigger that starts a run at a user's commit, on real PostgreSQL, without a triggerer."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Event

import psycopg
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.trigger import Trigger
from airflow.serialization.encoders import encode_trigger
from airflow.triggers.base import BaseEventTrigger

from concord.configuration.configuration import Configuration, load
from concord.databases import provisioning
from concord.databases.postgresql.capture.notify import CHANNEL
from concord.orchestration.dags import change_trigger
from concord.orchestration.dags.change_trigger import ChangeTrigger, watchers
from concord.orchestration.tasks.jobs import installations
from concord.values import debounce
from embedded.postgres import Server
from tests.conftest import PROJECT
from tests.given.airflow_pair import (
    CANARY,
    CONFIGURATION,
    LOGINS,
    NAME,
    SITES,
    TABLES,
    Site,
    connection_json,
)

pytestmark = pytest.mark.airflow

WATCHED = CONFIGURATION.replace('schedule: "*/5', 'watch: {debounce: 100 ms}, schedule: "*/5')
Sites = dict[str, Site]


@pytest.fixture(scope="module")
def sites(server: Server, airflow_logins: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """London and Cape Town, provisioned once for the file; nothing is pending where no link has begun."""
    path = tmp_path_factory.mktemp("watched") / "concord.yaml"
    path.write_text(WATCHED)
    with pytest.MonkeyPatch.context() as environment:
        made = {}
        for name in SITES:
            server.create_database(f"trigger_{name}")
            made[name] = Site(server.uri(f"trigger_{name}"))
            made[name].run(TABLES)
            for role, login in {"": server.superuser, **LOGINS}.items():
                variable = f"AIRFLOW_CONN_{name.upper()}" + (f"_{role.upper()}" if role else "")
                password = CANARY if role else server.password
                environment.setenv(variable, connection_json(server, f"trigger_{name}", login, password))
        provisioning.provision(installations(load(path)))
        yield made
    for name in SITES:
        server.drop_database(f"trigger_{name}")


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_trigger, "FIRST_PAUSE", 0.05)


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    path = tmp_path / "concord.yaml"
    path.write_text(WATCHED)
    return load(path)


def trigger_of(configuration: Configuration) -> ChangeTrigger:
    (watcher,) = watchers(configuration, NAME)
    assert isinstance(watcher.trigger, ChangeTrigger)
    return watcher.trigger


def recreated(trigger: ChangeTrigger) -> ChangeTrigger:
    """As the triggerer makes it, from what is stored."""
    _, kept = trigger.serialize()
    return ChangeTrigger(**json.loads(json.dumps(kept)))


WATCHING = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'concord watch' AND datname = current_database()"
    " AND state = 'idle' AND query LIKE 'SELECT array_remove%'"
)


async def until(site: Site, count: int, query: str = WATCHING) -> None:
    """Wait until a site has so many sessions that watch it."""
    for _ in range(200):
        if await asyncio.to_thread(site.run, query) == [(count,)]:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"there are never {count} sessions that watch")


@asynccontextmanager
async def running(trigger: ChangeTrigger, *watched: Site) -> AsyncIterator[asyncio.Queue[dict[str, object]]]:
    """The payloads of the trigger's events, from when the sites are watched until it is cancelled, as Airflow does."""
    fired: asyncio.Queue[dict[str, object]] = asyncio.Queue()

    async def listen() -> None:
        async for event in trigger.run():
            fired.put_nowait(event.payload)

    task = asyncio.create_task(listen())
    try:
        for site in watched:
            await until(site, 1)
        yield fired
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for site in watched:
            await until(site, 0)


async def next_of(fired: asyncio.Queue[dict[str, object]], within: float = 5) -> object:
    return (await asyncio.wait_for(fired.get(), within))["pending"]


def test_a_commit_at_either_site_fires_and_a_burst_fires_once(
    sites: Sites, configuration: Configuration
) -> None:
    async def story() -> None:
        async with running(recreated(trigger_of(configuration)), *sites.values()) as fired:
            burst = "UPDATE flights SET delay = delay + 1 WHERE flight = 1; COMMIT;"
            await asyncio.to_thread(sites["london"].run, f"DO $$ BEGIN {burst * 5} END $$")
            assert await next_of(fired) == {"london": ["public.flights"]}
            await asyncio.to_thread(sites["capetown"].run, "UPDATE airlines SET name = 'U' || random()")
            assert await next_of(fired) == {"capetown": ["public.airlines"]}
            assert fired.empty()

    asyncio.run(story())


def test_a_site_that_ended_the_session_is_watched_again_and_one_line_says_so(
    sites: Sites, configuration: Configuration, caplog: pytest.LogCaptureFixture
) -> None:
    ending = (
        "SELECT count(pg_terminate_backend(pid, 2000)) FROM pg_stat_activity"
        " WHERE application_name = 'concord watch' AND datname = current_database()"
    )

    async def story() -> None:
        async with running(trigger_of(configuration), *sites.values()) as fired:
            await asyncio.to_thread(sites["london"].run, ending)
            await until(sites["london"], 1)
            await asyncio.to_thread(sites["london"].run, "UPDATE flights SET note = 'again' || random()")
            assert await next_of(fired) == {"london": ["public.flights"]}

    asyncio.run(story())
    [record] = [each for each in caplog.records if each.name == "concord.watch"]
    assert record.levelno == logging.WARNING
    said = record.getMessage()
    assert said.startswith(
        "london_capetown: commits of london start no run now, the schedule does; the site is asked"
    )
    assert "\n" not in said


def test_a_site_without_its_connection_leaves_the_other_one_watched(
    sites: Sites,
    configuration: Configuration,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_CAPETOWN_READER")

    async def story() -> None:
        async with running(trigger_of(configuration), sites["london"]) as fired:
            await asyncio.to_thread(sites["london"].run, "UPDATE flights SET note = 'alone' || random()")
            assert await next_of(fired) == {"london": ["public.flights"]}

    asyncio.run(story())
    assert "there is no Airflow connection 'capetown_reader'" in caplog.text


def test_a_wrong_password_is_told_without_it(
    sites: Sites,
    configuration: Configuration,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # No secret in a log. The test server trusts everybody, so the login itself is what is wrong.
    refused = connection_json(server, "trigger_capetown", "nobody_of_this_name", CANARY)
    monkeypatch.setenv("AIRFLOW_CONN_CAPETOWN_READER", refused)

    async def story() -> None:
        async with running(trigger_of(configuration), sites["london"]):
            await asyncio.sleep(0.2)

    asyncio.run(story())
    assert "authentication failed for user" in caplog.text
    assert "Mend the Airflow connection capetown_reader." in caplog.text
    assert CANARY not in caplog.text


def test_what_airflow_stores_of_the_trigger_names_connections_and_holds_no_login(
    configuration: Configuration, sites: Sites
) -> None:
    classpath, kept = trigger_of(configuration).serialize()
    assert classpath == "concord.orchestration.dags.change_trigger.ChangeTrigger"
    assert kept["connections"] == ["london_reader", "capetown_reader"]
    said = json.dumps(encode_trigger(trigger_of(configuration)))
    assert not [word for word in (CANARY, *LOGINS.values(), "127.0.0.1") if word in said]


def test_airflow_knows_the_stored_trigger_again_and_lets_it_run(
    configuration: Configuration, airflow_home: Path
) -> None:
    # Else every parse of the DAG would end it, and begin another.
    parsed = encode_trigger(trigger_of(configuration))
    stored = Trigger(classpath=parsed["classpath"], kwargs=parsed["kwargs"])
    assert BaseEventTrigger.hash(stored.classpath, stored.kwargs) == BaseEventTrigger.hash(
        parsed["classpath"], parsed["kwargs"]
    )


def test_the_dag_runs_by_its_schedule_and_by_its_watched_asset(
    configuration: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONCORD_CONFIG", str(tmp_path / "concord.yaml"))
    bag = DagBag(str(PROJECT / "dags"))
    assert bag.import_errors == {}
    dag = bag.dags[f"synchronize__{NAME}"]
    [asset] = dag.timetable.asset_condition.objects
    assert [watcher.name for watcher in asset.watchers] == [f"commits__{NAME}"]
    assert "*/5 * * * *" in dag.timetable.timetable.expression
    assert (dag.max_active_runs, dag.allowed_run_types) == (1, None)  # backfills too, as ever


def test_without_the_word_nothing_is_watched(tmp_path: Path) -> None:
    path = tmp_path / "concord.yaml"
    path.write_text(CONFIGURATION)
    assert watchers(load(path), NAME) == []


def test_a_login_that_announces_without_end_starts_one_run_in_five_seconds_at_most(
    sites: Sites, configuration: Configuration, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any login of the database may announce; the events are few, however many its announcements are."""
    assert debounce.LONGEST == 5
    monkeypatch.setattr(debounce, "LONGEST", 1.0)

    async def main() -> tuple[int, list[float]]:
        clock, ended, came = asyncio.get_running_loop().time, Event(), list[float]()
        async with running(trigger_of(configuration), *sites.values()) as fired:
            start = clock()
            flooding = asyncio.create_task(asyncio.to_thread(flood, server.uri("trigger_london"), ended))
            while clock() - start < 4:
                with suppress(TimeoutError):
                    await asyncio.wait_for(fired.get(), 4 - (clock() - start))
                    came.append(clock() - start)
            ended.set()
            return await flooding, came

    announced, came = asyncio.run(main())
    assert announced > 300
    # After 0.1 s, 0.2 s and so on, twice as long each time, up to a second.
    assert 2 <= len(came) <= 7
    assert came[-1] - came[-2] > 0.5


def flood(uri: str, ended: Event) -> int:
    """Announce what nobody has changed, until told to end; how often."""
    announced = 0
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"SET ROLE {LOGINS['reader']}".encode())
        while not ended.is_set():
            connection.execute(f"NOTIFY {CHANNEL}, 'public.flights'".encode())
            announced += 1
            time.sleep(0.001)  # as often as leaves the processor to others
    return announced
