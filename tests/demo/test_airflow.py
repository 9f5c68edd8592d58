"""`make airflow`: a page for this machine alone, and nothing left of it after SIGTERM."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psutil
import pytest

from embedded import ports

PROJECT = Path(__file__).resolve().parents[2]
DAG = "synchronize__london_capetown"

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(600)]


@dataclass
class Demo:
    """`make airflow` at work: its process, where it serves and keeps its files, what it said, and who may log in."""

    process: subprocess.Popen[str]
    port: int
    directory: Path
    said: str = ""

    @property
    def password_file(self) -> Path:
        found = re.search(r"Password: in (\S+)", self.said)
        assert found is not None, self.said
        return Path(found[1])

    @property
    def password(self) -> str:
        return json.loads(self.password_file.read_text())["admin"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """One for all tests, in their order: the lines that it prints, a run, and its end."""
    port, directory = ports.free(), tmp_path_factory.mktemp("airflow") / "run"
    command = [sys.executable, "-m", "demo.airflow", "--flights", "1000", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--directory", str(directory)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": "plugins:."},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    made = Demo(process, port, directory)
    try:
        made.said = _read_until(process, "Ctrl-C stops")
        assert _serves(DAG, port, made.password)
        yield made
    finally:
        process.terminate()
        process.communicate(timeout=120)


@pytest.mark.long
def test_the_lines_that_it_prints_lead_another_terminal_to_its_sites_and_its_airflow(demo):
    assert f"http://127.0.0.1:{demo.port}" in demo.said
    assert demo.password_file.stat().st_mode & 0o077 == 0
    _try_the_lines(demo.said, demo.directory)


def _try_the_lines(said: str, directory: Path) -> None:
    """As a person types them into another terminal, each after the first one."""
    source, *commands = re.findall(r"^  ((?:\.|psql|python) .*)$", said, re.MULTILINE)
    assert (directory / "environment").stat().st_mode & 0o077 == 0
    assert (directory / "pg_service.conf").stat().st_mode & 0o077 == 0
    foreign = {"AIRFLOW_HOME": "/nowhere", "PGHOST": "nowhere", "PATH": os.environ["PATH"]}
    answers = []
    for command in commands:
        query = " -c 'SELECT current_user, count(*) FROM flights'" if command.startswith("psql") else ""
        typed = subprocess.run(
            ["sh", "-c", f"{source} && {command}{query}"],
            cwd=PROJECT,
            env=foreign,
            capture_output=True,
            text=True,
            check=False,
        )
        assert typed.returncode == 0, typed.stderr
        answers.append(typed.stdout)
    assert re.search(r"operations +\| +1057\b", answers[0])  # 1,000 flights, 65 new ones, 8 deleted
    assert re.search(r"operations +\| +947\b", answers[1])  # 45 new ones, 98 deleted
    assert "london_capetown" in answers[2]


@pytest.mark.long
def test_a_synchronization_asked_for_at_a_terminal_is_run_by_the_scheduler_unless_its_dag_is_paused(demo):
    port, password = demo.port, demo.password
    started = psutil.Process(demo.process.pid).children(recursive=True)
    settings = next(each.environ() for each in started if "demo.standalone" in each.cmdline())

    here = _synchronize(settings)
    unpaused = httpx.patch(
        f"http://127.0.0.1:{port}/api/v2/dags/{DAG}",
        headers=_token(port, password),
        json={"is_paused": False},
    )
    assert unpaused.is_success
    there = _synchronize(settings)

    assert sum(each["applied"] for each in here["tables"]) > 0, "users had edited their copies"
    assert sum(each["applied"] for each in there["tables"]) == 0, "the first run has carried it all"
    assert [_triggered_by(told["run"], port, password) for told in (here, there)] == ["test", "cli"]


@pytest.mark.long
def test_it_listens_on_this_machine_alone_and_stops_with_all_its_processes(demo):
    """The last one: nothing of it is left."""
    port, process = demo.port, demo.process
    started = psutil.Process(process.pid).children(recursive=True)
    assert _listening_addresses(started) == {"127.0.0.1"}
    assert _readable_by_others(demo.directory) == []

    (spark,) = [each for each in started if "spark_jobs.connect_server" in _command(each)]
    assert not [name for name in spark.environ() if name.startswith("AIRFLOW")], (
        "it needs none of its secrets"
    )
    process.send_signal(signal.SIGTERM)

    assert process.wait(120) == 0
    assert [each for each in started if _runs(each)] == []
    assert [path.name for path in demo.directory.iterdir() if path.is_dir()] == ["logs"]
    with socket.socket() as candidate:
        assert candidate.connect_ex(("127.0.0.1", port)) != 0


def _command(process: psutil.Process) -> list[str]:
    """Of one that has ended meanwhile, and of a zombie: nothing."""
    try:
        return process.as_dict(["cmdline"])["cmdline"] or []
    except psutil.NoSuchProcess:
        return []


def _synchronize(settings: dict[str, str]) -> dict[str, Any]:
    """The words of `python -m concord synchronize`, typed where the demo's Airflow is at work."""
    command = [sys.executable, "-m", "concord", "synchronize", "london_capetown", "--json"]
    done = subprocess.run(
        command, cwd=PROJECT, env=settings, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _triggered_by(run: str, port: int, password: str) -> str:
    page = f"http://127.0.0.1:{port}/api/v2/dags/{DAG}/dagRuns/{quote(run, safe='')}"
    return httpx.get(page, headers=_token(port, password)).json()["triggered_by"]


def _token(port: int, password: str) -> dict[str, str]:
    login = httpx.post(
        f"http://127.0.0.1:{port}/auth/token", json={"username": "admin", "password": password}
    )
    return {"Authorization": f"Bearer {login.json()['access_token']}"}


def _runs(process: psutil.Process) -> bool:
    """An ended process whose new parent has not asked for its status yet does not run."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_port_that_is_taken_is_refused_in_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "demo.airflow",
            "--port",
            str(port),
            "--directory",
            str(tmp_path / "run"),
        ]
        environment = {**os.environ, "PYTHONPATH": "plugins:."}
        ended = subprocess.run(
            command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr == f"Port {port} is taken. Name another one with --port.\n"


def _read_until(process: subprocess.Popen[str], words: str) -> str:
    said = ""
    while words not in said:
        line = process.stdout.readline()
        assert line, f"it ended: {said}"
        said += line
    return said


def _serves(dag: str, port: int, password: str) -> bool:
    """Whether the API knows the DAG; the DAG processor reads one file after the other, and may need a moment."""
    page, headers = f"http://127.0.0.1:{port}", _token(port, password)
    for _ in range(120):
        if httpx.get(f"{page}/api/v2/dags/{dag}", headers=headers).is_success:
            return True
        time.sleep(1)
    return False


def _listening_addresses(processes: list[psutil.Process]) -> set[str]:
    addresses = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # Airflow's processes come and go
            addresses |= {
                ip_address(connection.laddr.ip)
                for connection in process.net_connections("tcp")
                if connection.status == psutil.CONN_LISTEN
            }
    return {str(getattr(each, "ipv4_mapped", None) or each) for each in addresses}


def _readable_by_others(directory: Path) -> list[Path]:
    """The logs and databases that another account could read."""
    kept = [each for each in directory.rglob("*") if re.search(r"\.(log|db)(-\w+)?$", each.name)]
    assert kept, "nothing was found"
    return [each for each in kept if each.stat().st_mode & 0o077]
