"""`python -m demo.backfill`: `airflow backfill create` against a running scheduler, from the damage to the proof.

By hand, since it takes some minutes. A local Airflow has a synchronization that runs every minute, and rows go
behind the back of capture. Airflow backfills the minutes in which they were edited, beside the scheduled runs.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pendulum
from rich.console import Console

from concord.configuration.configuration import load
from concord.messages.how_many import how_many
from demo import background, runs, sites, terminal, workspace
from demo.airflow import STANDALONE, local_settings, make_password, wait_until_healthy
from demo.environment import CONFIG, PROJECT, environment
from demo.options import parser
from demo.progress import Progress
from demo.scene import Scene, opened
from demo.sites import APPLIER, CAPETOWN, LONDON
from embedded import ports
from embedded.connect_server import starting

#: Rows that Cape Town loses.
LOST = 5
#: Every minute, so that the edits' minutes are over soon.
SCHEDULE = ('schedule: "*/5 * * * *"', 'schedule: "* * * * *"')
_PATIENCE_SECONDS = 900.0
_POLL_SECONDS = 10.0  # a command of Airflow takes seconds itself


def main(arguments: list[str]) -> int:
    """The exit status: 0 when the backfill has put back what was lost."""
    options = parser("A backfill through Airflow's scheduler, shown.").parse_args(arguments)
    directory = (options.directory or workspace.DEFAULT / "backfill").absolute()
    return terminal.run(lambda: _show(directory, options.flights), directory / "logs")


def _show(directory: Path, flights: int) -> int:
    console = terminal.console()
    progress = Progress(console)
    with workspace.workspace(directory):
        configuration = load(CONFIG)
        began = pendulum.now("UTC")
        with opened(progress, directory, configuration, flights, keep=False) as scene:
            edited = pendulum.now("UTC")
            connections = sites.connections(scene.sites, configuration)
            settings = _settings(directory, connections)
            log, port = directory / "logs" / "airflow.log", ports.free()
            make_password(directory / "airflow")
            settings |= local_settings(directory / "airflow", port)
            alone = environment(directory / "airflow", {})
            with (
                starting(directory / "logs" / "spark.log", alone) as spark,
                background.running(
                    STANDALONE,
                    settings | {"AIRFLOW_CONN_SPARK_DEFAULT": spark.connection},
                    log,
                ) as process,
            ):
                with progress.step("Start Airflow and Spark"):
                    wait_until_healthy(process, port, log)
                    spark.wait()
                done = _Backfill(console, progress, settings, scene).run(began, edited)
        workspace.clear(directory, but="logs")
    return 0 if done else 1


def _settings(directory: Path, connections: Mapping[str, str]) -> dict[str, str]:
    """As the demo's own, but for a synchronization that runs every minute."""
    directory.joinpath("airflow").mkdir(parents=True, exist_ok=True)
    path = directory / "airflow" / "concord.yaml"
    path.write_text(CONFIG.read_text().replace(*SCHEDULE))
    return {**environment(directory / "airflow", connections), "CONCORD_CONFIG": str(path)}


@dataclass(frozen=True)
class _Backfill:
    console: Console
    progress: Progress
    settings: Mapping[str, str]
    scene: Scene

    def run(self, began: datetime, edited: datetime) -> bool:
        with self.progress.step("Run the synchronization once, and let the schedule go on"):
            self._airflow("dags", "unpause", runs.DAG)
            self._wait_until_equal()
        self.console.print(
            f"\n{how_many(self._lose(), 'flight is', 'flights are')} deleted at Cape Town past the triggers",
            highlight=False,
        )
        _wait_for(edited.replace(second=0, microsecond=0) + timedelta(minutes=1, seconds=5))
        with self.progress.step("A run that comes by its schedule sees nothing of it") as step:
            self._wait_for_runs("scheduled", since=pendulum.now("UTC"))
            step.result = f"{how_many(self._missing(), 'flight is', 'flights are')} missing"
        asked = (
            "backfill",
            "create",
            "--dag-id",
            runs.DAG,
            "--from-date",
            _minute(began),
            "--to-date",
            _minute(edited),
        )
        how = ("--max-active-runs", "10", "--reprocess-behavior", "completed")
        self.console.print(f"\n$ airflow {' '.join(asked + how)}", highlight=False, soft_wrap=True)
        self.console.print(self._airflow(*asked, *how), highlight=False)
        self._wait_for_runs("backfill")
        self._report()
        return self._missing() == 0

    def _airflow(self, *arguments: str) -> str:
        """The output of a command of Airflow's. Raises ProgramFailed."""
        command = [sys.executable, "-m", "airflow", *arguments]
        ended = subprocess.run(
            command, cwd=PROJECT, env=dict(self.settings), capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise background.ProgramFailed(f"`airflow {' '.join(arguments)}`: {ended.stdout}{ended.stderr}")
        return ended.stdout.strip()

    def _runs(self) -> list[dict[str, Any]]:
        said = self._airflow("dags", "list-runs", runs.DAG, "--output", "json")
        _, found, listed = said.partition("[{")  # beside what the command logs
        return list(json.loads(found + listed)) if found else []

    def _wait_for_runs(self, kind: str, since: datetime | None = None) -> None:
        """Until every run of this kind, and at least one that began since then, has ended."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = [run for run in self._runs() if run["run_id"].startswith(kind) or kind == "backfill"]
            late = [run for run in found if since is None or _moment(run["start_date"]) >= since]
            if late and all(run["state"] in ("success", "failed") for run in late):
                return
            time.sleep(_POLL_SECONDS)
        raise background.ProgramFailed(f"no {kind} run has ended within {_PATIENCE_SECONDS:.0f} s")

    def _wait_until_equal(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not any(run["state"] == "success" for run in self._runs()):
            if time.monotonic() > deadline:
                raise background.ProgramFailed("no run has succeeded")
            time.sleep(_POLL_SECONDS)

    def _lose(self) -> int:
        """No trigger sees the acts of a session under the applier's login."""
        chosen = (
            'SELECT f.ctid FROM public.flights f JOIN concord."public.flights" p ON (f.carrier, f.flight, f.origin,'
            " f.time_hour) = (p.carrier, p.flight, p.origin_, p.time_hour) WHERE p.origin = 'london#1'"
            f" ORDER BY 1 LIMIT {LOST}"
        )
        with self.scene.sites[CAPETOWN].connect(APPLIER) as applier:
            applier.execute("SET concord.applying = 'on'")
            return applier.execute(f"DELETE FROM public.flights WHERE ctid IN ({chosen})".encode()).rowcount

    def _missing(self) -> int:
        """Flights that London has more than Cape Town."""
        return self._flights(LONDON) - self._flights(CAPETOWN)

    def _flights(self, site: str) -> int:
        with self.scene.sites[site].connect_as_superuser() as superuser:
            found = superuser.execute("SELECT count(*) FROM public.flights").fetchone()
        assert found is not None, "count(*) always gives a row"
        return int(found[0])

    def _report(self) -> None:
        for run in sorted(self._runs(), key=lambda run: str(run["start_date"])):
            self.console.print(
                "  ".join(str(run[name]) for name in ("run_id", "state", "start_date", "end_date")),
                highlight=False,
                soft_wrap=True,
            )
        with self.scene.sites[CAPETOWN].connect_as_superuser() as superuser:
            log = "SELECT type, count(*) FROM concord.conflict WHERE type = 'restored' GROUP BY type"
            self.console.print(
                f"{superuser.execute(log.encode()).fetchall()};"
                f" {how_many(self._missing(), 'flight is', 'flights are')} missing"
            )


def _wait_for(moment: datetime) -> None:
    time.sleep(max(0.0, (moment - pendulum.now("UTC")).total_seconds()))


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:00Z}"


def _moment(text: str | None) -> datetime:
    return datetime.fromisoformat(text) if text else pendulum.datetime(1970, 1, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
