"""On a Spark standalone cluster a link does what it does on one machine, also when an executor dies (F57)."""

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from embedded.connect_server import ConnectServer, connect_server
from embedded.spark_cluster import AUTHENTICATED, Cluster
from spark_jobs.connect import connected
from tests.conftest import PROJECT
from tests.given.at_step import At
from tests.given.comparison import compared
from tests.given.fixtures import MakePair
from tests.given.two_sites import Pair, carried
from tests.link.spark.submitted_link import Submission

#: The tests start Sparks of their own, and Connect servers.
pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("classic"),
]

#: More changes than one reader takes, so that both workers have some.
MANY = 25_000
ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL, price numeric)",
    f"INSERT INTO item SELECT n, 'common', n / 7.0 FROM generate_series(1, {MANY}) n",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, java: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"), java, os.environ)
    yield started
    started.stop()


@pytest.fixture
def on_the_cluster(cluster: Cluster, tmp_path: Path) -> Iterator[ConnectServer]:
    """A Connect server whose tasks run on the cluster, where Concord is installed; it holds all of its cores."""
    library = f"{PROJECT}:{PROJECT / 'plugins'}"
    settings = {**AUTHENTICATED, "spark.executor.memory": "512m", "spark.executorEnv.PYTHONPATH": library}
    (tmp_path / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in settings.items())
    )
    environment = {**cluster.environment, "PYTHONPATH": library, "SPARK_CONF_DIR": str(tmp_path)}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with connect_server(tmp_path / "spark.log", environment, master=cluster.url, memory="512m") as server:
        yield server


def edit(sites: Pair) -> None:
    sites.london.run("UPDATE item SET token = 'london', price = price + 0.10")
    sites.london.run("INSERT INTO item VALUES (-1, 'new at london', 'NaN')", "DELETE FROM item WHERE id = 2")
    time.sleep(0.01)
    sites.capetown.run(
        "UPDATE item SET token = 'capetown' WHERE id % 100 = 0",
        "UPDATE item SET token = 'brought back' WHERE id = 2",
        "DELETE FROM item WHERE id = 3",
    )


def test_a_cluster_gives_the_same_rows_conflicts_and_counts_as_one_machine(
    pair: MakePair, cluster: Cluster
) -> None:
    alone, spread = pair(*ITEM), pair(*ITEM)
    for sites in (alone, spread):
        edit(sites)

    here = [alone.run(direction) for direction in ("forward", "reverse")]
    there = [Submission(cluster, spread.job(direction)).finish() for direction in ("forward", "reverse")]

    assert [report.tables for report in there] == [report.tables for report in here]
    assert carried(there[0]).acquired == MANY + 1
    assert carried(there[0]).conflicts == MANY // 100 + 2
    assert spread.contents() == alone.contents()
    assert spread.equal
    assert recorded(spread) == recorded(alone)
    assert cluster.executors_of(1)
    assert cluster.executors_of(2)


def test_a_connect_server_on_the_cluster_gives_the_same_rows_conflicts_and_counts(
    pair: MakePair, on_the_cluster: ConnectServer, cluster: Cluster
) -> None:
    alone, spread = pair(*ITEM), pair(*ITEM)
    for sites in (alone, spread):
        edit(sites)
    here = [alone.run(direction) for direction in ("forward", "reverse")]
    with connected(on_the_cluster.url) as spark:
        remote = replace(spread, spark=spark)
        there = [remote.run(direction, spark_from=1) for direction in ("forward", "reverse")]
        assert compared(remote).found == 0
    assert [report.tables for report in there] == [report.tables for report in here]
    assert spread.contents() == alone.contents()
    assert spread.equal
    assert recorded(spread) == recorded(alone)


def recorded(sites: Pair) -> list[tuple[object, ...]]:
    return sorted(
        (c["key"], c["type"], c["winner_site"], str(c["winner_row"]), str(c["loser_row"]))
        for c in sites.conflicts()
    )


def staging(sites: Pair) -> list[tuple[object, ...]]:
    return sites.capetown.rows(
        "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'concord_staging'::regnamespace"
    )


def test_rows_that_a_lost_attempt_left_in_staging_are_not_believed(pair: MakePair) -> None:
    # F57: an attempt that committed its rows, but whose result never reached the driver
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london' WHERE id <= 10")

    def leave() -> None:
        ((relation,),) = staging(sites)
        (columns,) = zip(
            *sites.capetown.rows(
                f"SELECT attname FROM pg_attribute WHERE attrelid = '{relation}'::regclass AND attnum > 0"
            ),
            strict=True,
        )
        others = ", ".join(str(name) for name in columns if name not in ("attempt", "c2"))
        sites.capetown.run(
            f"INSERT INTO {relation} ({others}, c2, attempt) SELECT {others}, 'lost', attempt + 1000 FROM {relation}"
        )

    report = sites.run(at=At("hold_fence", leave))

    assert carried(report).applied == 10
    assert sites.equal


def copies_waiting(sites: Pair) -> int:
    return int(
        sites.capetown.value(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'concord stage'"
            " AND datname = current_database() AND wait_event_type = 'Lock'"
        )
    )


def test_an_executor_of_a_connect_server_that_is_killed_while_staging_changes_nothing_in_the_result(
    pair: MakePair, on_the_cluster: ConnectServer, cluster: Cluster
) -> None:
    # F57, over Connect: the driver hears of nothing
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london'")

    def kill() -> None:
        until(lambda: bool(staging(sites)))
        with sites.capetown.log_in("postgres", autocommit=False) as holder:
            holder.execute(f"LOCK TABLE {staging(sites)[0][0]}".encode())
            until(lambda: copies_waiting(sites) == 2)
            cluster.kill_executor(1)

    with connected(on_the_cluster.url) as spark, ThreadPoolExecutor(1) as killer:
        remote = replace(sites, spark=spark)
        killing = killer.submit(kill)
        report = remote.run(spark_from=1)
        killing.result()

    assert carried(report).applied == MANY
    assert sites.equal
    assert staging(sites) == []


def test_a_worker_that_is_killed_while_staging_changes_nothing_in_the_result(
    pair: MakePair, cluster: Cluster
) -> None:
    # F57: the task is done again by the other worker
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london'")
    submission = Submission(cluster, sites.job(spark_from=1))
    until(lambda: bool(staging(sites)))
    with sites.capetown.log_in("postgres", autocommit=False) as holder:
        holder.execute(f"LOCK TABLE {staging(sites)[0][0]}".encode())
        until(lambda: copies_waiting(sites) == 2)
        cluster.kill_worker(1)

    report = submission.finish()

    assert carried(report).applied == MANY
    assert sites.equal
    assert staging(sites) == []


def until(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "waited 120 s in vain"
        time.sleep(0.005)
