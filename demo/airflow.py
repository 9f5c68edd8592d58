"""`python -m demo.airflow`: a local Airflow with the demo's sites and DAGs to click in, until Ctrl-C."""

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from concord.configuration.configuration import load
from demo import background, invitation, runs, sites, terminal, workspace
from demo.environment import CONFIG, environment
from demo.options import parser
from demo.progress import Progress
from demo.scene import opened
from embedded import ports
from embedded.connect_server import starting

HOST = "127.0.0.1"
STANDALONE = ["demo.standalone"]
_USUAL_PORT = 8080
_START_SECONDS = 180.0
_POLL_SECONDS = 0.5


def main(arguments: list[str]) -> int:
    """Run until Ctrl-C or SIGTERM, which is a good end; everything that was started is stopped."""
    options = _parser().parse_args(arguments)
    directory = (options.directory or workspace.DEFAULT / "airflow").absolute()
    status = terminal.run(lambda: _serve(options, directory), directory / "logs")
    return 0 if status == terminal.INTERRUPTED else status


def _parser() -> argparse.ArgumentParser:
    made = parser("A local Airflow with the demo's two sites and its DAGs. Ctrl-C stops it.")
    made.add_argument(
        "--port",
        type=int,
        metavar="PORT",
        help=f"where the web page is (default: {_USUAL_PORT}, else a free one)",
    )
    return made


def _serve(options: argparse.Namespace, directory: Path) -> int:
    console, configuration, port = terminal.console(), load(CONFIG), _choose_port(options.port)
    progress = Progress(console)
    with workspace.workspace(directory):
        try:
            with opened(progress, directory, configuration, options.flights, keep=False) as scene:
                _run_airflow(console, progress, directory, scene.sites, port)
        finally:
            workspace.clear(directory, but="logs")
    return 0


def _run_airflow(console: Console, progress: Progress, directory: Path, made: sites.Sites, port: int) -> None:
    home, log = directory / "airflow", directory / "logs" / "airflow.log"
    make_password(home)
    settings = {**environment(home, sites.connections(made, load(CONFIG))), **local_settings(home, port)}
    with starting(directory / "logs" / "spark.log", environment(home, {})) as spark:
        settings["AIRFLOW_CONN_SPARK_DEFAULT"] = spark.connection
        with background.running(STANDALONE, settings, log) as process:
            with progress.step("Start Airflow and Spark"):
                wait_until_healthy(process, port, log)
                spark.wait()
            invitation.write(directory, settings, made)
            console.print(_invitation(port, directory, log), highlight=False, soft_wrap=True)
            background.wait(process, STANDALONE, log)


def local_settings(home: Path, port: int) -> Mapping[str, str]:
    """Airflow for one person on this machine: reached from nowhere else, four tasks at a time."""
    settings = {
        "API__HOST": HOST,
        "API__PORT": str(port),
        "API__BASE_URL": f"http://{HOST}:{port}",
        "API__WORKERS": "1",
        "CORE__EXECUTION_API_SERVER_URL": f"http://{HOST}:{port}/execution/",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": "4",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(password_file(home)),
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
    }
    return {f"AIRFLOW__{name}": value for name, value in settings.items()}


def password_file(home: Path) -> Path:
    """Where Airflow looks up the password of `admin`."""
    return home / "password.json"


def make_password(home: Path) -> None:
    """One of our own making: Airflow would print its own into the log."""
    home.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(password_file(home), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"admin": secrets.token_urlsafe(16)}, file)


def _choose_port(wanted: int | None) -> int:
    """The wanted port, which must be free; else the usual one, or any when that is taken."""
    if wanted is None:
        return _USUAL_PORT if _is_free(_USUAL_PORT) else ports.free()
    if not _is_free(wanted):
        raise workspace.Unusable(f"Port {wanted} is taken. Name another one with --port.")
    return wanted


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        # As the web server itself does: a port that was used a moment ago is free.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((HOST, port))
        except OSError:
            return False
    return True


def wait_until_healthy(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when the web page, the scheduler and the DAG processor all say that they work.

    Raises ProgramFailed when Airflow ends, or takes longer than three minutes.
    """
    deadline = time.monotonic() + _START_SECONDS
    while not _is_healthy(port):
        if process.poll() is not None:
            raise background.ProgramFailed(f"Airflow ended while it started. Its output: {log}")
        if time.monotonic() > deadline:
            raise background.ProgramFailed(
                f"Airflow was not ready within {_START_SECONDS:.0f} s. Its output: {log}"
            )
        time.sleep(_POLL_SECONDS)


def _is_healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/api/v2/monitor/health", timeout=5) as answer:
            parts = json.load(answer)
    except (OSError, ValueError):
        return False
    return all(parts[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "dag_processor"))


def _invitation(port: int, directory: Path, log: Path) -> str:
    commands = "\n".join(f"  {line}" for line in invitation.lines(directory))
    return f"""
[bold]http://{HOST}:{port}[/]   user: admin
Password: in {password_file(directory / "airflow")}
Airflow's output: {log}

Users of both sites have edited their flights. Trigger [bold]{runs.DAG}[/]
to make the sites equal. DAGs are paused at first: unpause it, and it runs every
five minutes, and whenever users of a site commit.

In another terminal, as users of either site, and as a person who asks Concord:
{commands}

Ctrl-C stops Airflow, Spark and both PostgreSQL servers, and deletes all but the logs.
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
