"""A session on a real Spark Connect server: who is admitted, what a person is told, and what is left behind."""

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from traceback import format_exception

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import functions
from pyspark.sql.connect.client.retries import DefaultPolicy

import spark_jobs.connect
from concord.messages.errors import ConnectionRefused, OtherCode, SparkUnavailable
from concord.transmission.errors import worded
from embedded import ports
from embedded.connect_server import ConnectServer, ConnectServerFailed, connect_server, starting
from spark_jobs import code_state
from spark_jobs.code_state import in_this_code
from spark_jobs.connect import Connected, check, connected
from spark_jobs.interruption import interrupt_all
from spark_jobs.settings import SETTINGS

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")]

CANARY = "a-login-that-nobody-may-see"


def sleeping(place: Path) -> object:
    """A task that says that it lives, a tenth of a second each."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _ in range(600):
                place.write_text(str(time.time()))
                time.sleep(0.1)
                yield batch

    return task


def alive(place: Path) -> bool:
    return place.exists() and time.time() - float(place.read_text() or 0) < 2


def until(condition: object, seconds: float = 100) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def test_a_session_is_told_what_every_session_of_ours_is_told(connect: ConnectServer) -> None:
    with connected(connect.url) as session:
        assert {name: session().conf.get(name) for name in SETTINGS} == SETTINGS
        assert session() is session()


def test_sessions_share_their_workers(connect: ConnectServer) -> None:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"parent": [os.getppid()]})

    daemons = set()
    for _ in range(3):
        with connected(connect.url) as session:
            daemons |= {row.parent for row in session().range(1).mapInArrow(task, "parent bigint").collect()}
    (daemon,) = daemons
    assert "spark_jobs.worker_daemon" in psutil.Process(daemon).cmdline()


def test_the_process_may_start_a_spark_of_its_own_afterwards(connect: ConnectServer) -> None:
    with connected(connect.url) as session:
        session()
        assert "SPARK_CONNECT_MODE_ENABLED" in os.environ
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def test_a_session_that_ends_leaves_the_others_of_its_process_alone(connect: ConnectServer) -> None:
    with connected(connect.url) as first:
        first()
        with connected(connect.url) as second:
            second()
        frame = first().range(3).select((functions.col("id") + functions.lit(1)).alias("id"))
        assert [row.id for row in frame.collect()] == [1, 2, 3]


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each error that pyspark met: does it try again?"""
    decided, can_retry = list[bool](), DefaultPolicy.can_retry

    def noted(self: DefaultPolicy, error: BaseException) -> bool:
        decided.append(can_retry(self, error))
        return decided[-1]

    monkeypatch.setattr(DefaultPolicy, "can_retry", noted)
    return decided


@pytest.mark.parametrize("given", [";token=wrong", ""])
def test_who_has_not_the_token_is_refused_at_once(
    connect: ConnectServer, tries: list[bool], given: str
) -> None:
    with pytest.raises(ConnectionRefused, match=r"refuses the token: .*SPARK_CONNECT_AUTHENTICATE_TOKEN"):
        check(f"sc://127.0.0.1:{connect.port}/{given}")
    assert set(tries) == {False}


def test_where_nobody_answers_it_is_told_within_seconds(tries: list[bool]) -> None:
    with pytest.raises(SparkUnavailable, match=r"no Spark Connect server answers at 127.0.0.1:\d+: start it"):
        check(f"sc://127.0.0.1:{ports.free()}")
    assert set(tries) == {True}
    assert len(tries) <= 20, (
        "asked twice for each of seven tries; pyspark itself tries for more than eight minutes"
    )


def test_workers_of_another_code_are_refused(connect: ConnectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_state, "CODE", "yesterday's")
    monkeypatch.setattr(spark_jobs.connect, "require_unchanged", lambda: None)
    with pytest.raises(OtherCode, match="restart the Connect server"):
        check(connect.url)


def test_a_process_that_began_before_an_upgrade_asks_for_no_session(
    connect: ConnectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_state, "CODE", "yesterday's")
    with pytest.raises(OtherCode, match="restart Airflow's processes"):
        check(connect.url)


def test_a_token_may_hold_what_the_providers_hook_leaves_as_it_is(connect: ConnectServer) -> None:
    with pytest.raises(ConnectionRefused, match="refuses the token"):
        check(f"sc://127.0.0.1:{connect.port}/;user_id=me;token=se/cr/et")
    with pytest.raises(ConnectionRefused, match="make no address of a Spark Connect server") as refused:
        check(f"sc:///;token={CANARY}")
    assert CANARY not in "".join(format_exception(refused.value))


def test_who_ends_a_process_ends_what_its_sessions_do(connect: ConnectServer, tmp_path: Path) -> None:
    place, failed = tmp_path / "alive", []
    with connected(connect.url) as session:
        spark = session()

        def work() -> None:
            try:
                spark.range(1).mapInArrow(sleeping(place), "id bigint").collect()  # type: ignore[arg-type]
            except Exception as error:  # noqa: BLE001
                failed.append(error)

        working = Thread(target=work)
        working.start()
        until(lambda: alive(place))
        interrupt_all()
        working.join(100)
    until(lambda: not alive(place))
    assert "OPERATION_CANCELED" in str(failed)


def test_nothing_that_a_connect_driver_imports_of_ours_brings_py4j() -> None:
    """Beside an Airflow that only speaks to a Connect server there is none."""
    for path, text in code_state.sources():
        if path not in ("spark_jobs/session.py", "spark_jobs/connect_server.py"):
            for node in ast.parse(text).body:
                assert "py4j" not in ast.unparse(node).split("def ")[0].split("class ")[0], path


def test_an_error_in_the_block_ends_what_the_server_does_for_it(
    connect: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, failed, close = tmp_path / "alive", [], Connected.close

    def work(session: Connected) -> None:
        try:
            session().range(1).mapInArrow(sleeping(place), "id bigint").collect()  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    with pytest.raises(KeyboardInterrupt), connected(connect.url) as session:  # noqa: PT012
        working = Thread(target=work, args=(session,))
        working.start()
        until(lambda: alive(place))
        # The work hears that it was interrupted before its channel is closed.
        monkeypatch.setattr(Connected, "close", lambda self: (working.join(100), close(self)))
        raise KeyboardInterrupt
    working.join(100)
    until(lambda: not alive(place))
    assert "OPERATION_CANCELED" in str(failed)


def test_a_server_ends_with_its_java_leaves_nothing_and_fails_the_work_in_our_words_within_seconds(
    java: Path, tmp_path: Path
) -> None:
    place = tmp_path / "alive"
    with connect_server(tmp_path / "spark.log") as server:
        family = psutil.Process(server.process.pid).children(recursive=True)
        (java_process,) = [each for each in family if "java" in each.name()]
        killer = Thread(
            target=lambda: (until(lambda: alive(place)), java_process.send_signal(signal.SIGKILL))
        )
        killer.start()
        began = time.monotonic()
        with (
            pytest.raises(
                SparkUnavailable, match=r"Spark has ended while it worked.*the next run tries again"
            ),
            connected(server.url) as session,
            worded("public.book"),
        ):
            session().range(1).mapInArrow(sleeping(place), "id bigint").collect()  # type: ignore[arg-type]
        killer.join()
        assert time.monotonic() - began < 200, "pyspark itself tries for more than eight minutes"
        assert server.process.wait(100) != 0
        until(lambda: not any(each.is_running() and each.status() != "zombie" for each in family))
    assert "Java has ended" in (tmp_path / "spark.log").read_text()


def test_a_server_without_a_token_binds_no_address_that_others_reach(
    java: Path,
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "spark_jobs.connect_server", "--host", "0.0.0.0"],  # noqa: S104
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "set SPARK_CONNECT_AUTHENTICATE_TOKEN" in ended.stderr


def test_a_server_that_ends_before_it_listens_is_no_server(java: Path, tmp_path: Path) -> None:
    with (
        starting(tmp_path / "spark.log", memory="much") as server,
        pytest.raises(ConnectServerFailed, match=r"ended\. Its output"),
    ):
        server.wait()


def test_what_a_function_carries_is_in_no_log_of_the_server(connect: ConnectServer) -> None:
    secret = CANARY

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"length": [len(secret)]})

    with connected(connect.url) as session:
        rows = session().range(1).mapInArrow(in_this_code(task), "length bigint").collect()
    assert [row.length for row in rows] == [len(CANARY)]
    assert CANARY not in connect.log.read_text()
    assert connect.token not in connect.log.read_text()
