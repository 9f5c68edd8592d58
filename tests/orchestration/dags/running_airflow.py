"""A whole Airflow at work: scheduler, DAG processor, triggerer and API server, and what a test asks of it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from demo.airflow import STANDALONE, local_settings, make_password, password_file, wait_until_healthy
from demo.background import running
from demo.environment import environment
from embedded import ports
from tests.conftest import PROJECT

ENDED = ("success", "failed")
PATIENCE = 240.0  #: seconds

Found = TypeVar("Found")


@dataclass
class Airflow:
    """One that runs, as its API shows it and its command line drives it."""

    page: str
    settings: Mapping[str, str] = field(repr=False)
    log: Path
    client: httpx.Client = field(repr=False)

    def runs(self, dag: str, kind: str) -> list[dict[str, Any]]:
        """The runs of one kind, oldest first."""
        path = f"{self.page}/api/v2/dags/{dag}/dagRuns"
        found = self._asked(self.client.get(path, params={"run_type": kind, "order_by": "run_after"}))
        return list(found["dag_runs"])

    def ended(self, dag: str, kind: str, many: int = 1) -> list[dict[str, Any]]:
        """The same, as soon as there are so many and each has ended."""

        def all_ended() -> list[dict[str, Any]] | None:
            runs = self.runs(dag, kind)
            return runs if len(runs) >= many and all(each["state"] in ENDED for each in runs) else None

        return until(all_ended, f"{many} {kind} runs of {dag} have ended: {self.log}")

    def unpause(self, dag: str) -> None:
        """As soon as the DAG processor has found it."""
        path = f"{self.page}/api/v2/dags/{dag}"
        until(lambda: self.client.get(path).is_success or None, f"{dag} is there: {self.log}")
        self._asked(self.client.patch(path, json={"is_paused": False}))

    def trigger(self, dag: str, **conf: object) -> None:
        """A manual run without a logical date, as the page's button makes it."""
        asked = {"logical_date": None, "conf": conf}
        self._asked(self.client.post(f"{self.page}/api/v2/dags/{dag}/dagRuns", json=asked))

    def tasks(self, dag: str, run_id: str) -> dict[str, dict[str, Any]]:
        """The tasks of a run by their id."""
        path = f"{self.page}/api/v2/dags/{dag}/dagRuns/{quote(run_id)}/taskInstances"
        return {each["task_id"]: each for each in self._asked(self.client.get(path))["task_instances"]}

    def set_pool(self, name: str, slots: int) -> None:
        """Make a pool, or give it another number of slots."""
        path, body = f"{self.page}/api/v2/pools", {"name": name, "slots": slots, "include_deferred": False}
        if self.client.get(f"{path}/{name}").is_success:
            asked = self.client.patch(f"{path}/{name}", params={"update_mask": "slots"}, json=body)
        else:
            asked = self.client.post(path, json=body)
        self._asked(asked)

    def says(self, *arguments: str) -> str:
        """The output of a command of Airflow's."""
        command = [sys.executable, "-m", "airflow", *arguments]
        ended = subprocess.run(
            command, cwd=PROJECT, env=dict(self.settings), capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def _asked(self, answer: httpx.Response) -> dict[str, Any]:
        assert answer.is_success, answer.text
        return dict(answer.json())


def until(look: Callable[[], Found | None], wanted: str, seconds: float = PATIENCE) -> Found:
    """The answer that `look` finds at last."""
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {wanted}"
        time.sleep(0.5)
    return found


@contextmanager
def airflow(
    folder: Path, dags: Path, connections: Mapping[str, str], configuration: Path, database: str
) -> Iterator[Airflow]:
    """An Airflow with the DAGs of one folder, on a port of its own and with an empty PostgreSQL database; then gone.

    On SQLite a command of its own fails as soon as the scheduler writes between its reading and its writing.
    DAGs are paused at first: its scheduler would begin their tasks before its API server listens to them.
    """
    home, log, port = folder / "airflow", folder / "airflow.log", ports.free()
    make_password(home)
    settings = {
        **environment(home, connections),
        **local_settings(home, port),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": database,
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "CONCORD_CONFIG": str(configuration),
    }
    with running(STANDALONE, settings, log) as process:
        wait_until_healthy(process, port, log)
        page = f"http://127.0.0.1:{port}"
        login = {"username": "admin", "password": json.loads(password_file(home).read_text())["admin"]}
        token = httpx.post(f"{page}/auth/token", json=login).json()["access_token"]
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as client:
            yield Airflow(page, settings, log, client)
