"""`python -m demo`: two sites with real data, edited by their users, made equal by one run, and a report."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from concord.configuration.configuration import Configuration, load
from demo import background, counters, proof, report, runs, sites, terminal, workspace
from demo.conflicts import print_conflicts
from demo.environment import CONFIG, environment
from demo.expectation import expect
from demo.options import parser
from demo.outcome import RunOutcome, latest_run
from demo.progress import Progress, Step
from demo.proof import Check
from demo.scene import Scene, opened
from embedded.connect_server import starting

MIGRATE = ["airflow", "db", "migrate"]


def main(arguments: list[str]) -> int:
    """Run the demo; 0 when every promise is kept."""
    options = _parser().parse_args(arguments)
    directory = (options.directory or workspace.DEFAULT / "demo").absolute()
    return terminal.run(lambda: _demo(directory, options.flights, keep=options.keep), directory / "logs")


def _parser() -> argparse.ArgumentParser:
    made = parser("Two sites with real data, edited by their users, made equal by one run; and a report.")
    made.add_argument("--keep", action="store_true", help="leave both sites running, and every log")
    return made


def _demo(directory: Path, flights: int, *, keep: bool) -> int:
    console = terminal.console()
    console.print(
        "Concord keeps flights equal in London and Cape Town.\nUsers of both change them at the same time.\n"
    )
    progress = Progress(console)
    all_kept = False
    with workspace.workspace(directory):
        try:
            checks = _play(console, progress, directory, flights, keep=keep)
            all_kept = report.print_verdict(console, checks, progress.seconds)
            if all_kept:
                report.print_what_next(console)
        finally:
            if not keep:
                workspace.clear(directory, but=None if all_kept else "logs")
    return 0 if all_kept else 1


def _play(console: Console, progress: Progress, directory: Path, flights: int, *, keep: bool) -> list[Check]:
    """Everything from the first server to the last look at the counters, with the report on the way."""
    configuration, home, logs = load(CONFIG), directory / "airflow", directory / "logs"
    with ExitStack() as stack:
        # Airflow's own database is made while the sites are: it takes as long.
        migration = stack.enter_context(
            background.running(MIGRATE, environment(home, {}), logs / "airflow.log")
        )
        spark = stack.enter_context(starting(logs / "spark.log", environment(home, {})))
        scene = stack.enter_context(opened(progress, directory, configuration, flights, keep=keep))
        with progress.step("Prepare an Airflow and a Spark of the demo's own"):
            background.wait(migration, MIGRATE, logs / "airflow.log")
            spark.wait()
        settings = environment(home, sites.connections(scene.sites, configuration))
        settings["AIRFLOW_CONN_SPARK_DEFAULT"] = spark.connection
        return _synchronize_twice(console, progress, scene, configuration, settings, home, logs)


def _synchronize_twice(
    console: Console,
    progress: Progress,
    scene: Scene,
    configuration: Configuration,
    settings: Mapping[str, str],
    home: Path,
    logs: Path,
) -> list[Check]:
    with progress.step(f"Run {runs.DAG}") as step:
        first = _synchronize(settings, home, logs / "run-1.log", step)
    expected = expect(scene.edits)
    with progress.step("Compare the sites"):
        found = proof.contents(scene.sites, configuration)
        settled = proof.contested_rows_settled(scene.sites, expected)
    report.print_run(console, first, step.seconds)
    print_conflicts(console, first.conflicts)
    report.print_proof(console, found, scene.before, expected)
    return [
        proof.run_succeeded(first, "first"),
        *proof.applied_as_expected(first, expected),
        *proof.conflicts_as_expected(first, expected),
        settled,
        *proof.sites_equal(found, scene.before, expected),
        *_again(progress, scene, settings, home, logs / "run-2.log"),
    ]


def _again(
    progress: Progress, scene: Scene, settings: Mapping[str, str], home: Path, log: Path
) -> list[Check]:
    """A second run, and what the databases' counters say of it."""
    before = counters.written(scene.sites)
    with progress.step("Run it again, with nothing to do") as step:
        second = _synchronize(settings, home, log, step)
    return [
        proof.run_succeeded(second, "second"),
        *proof.nothing_written(second, before, counters.written(scene.sites)),
    ]


def _synchronize(settings: Mapping[str, str], home: Path, log: Path, step: Step) -> RunOutcome:
    runs.synchronize(settings, log, step)
    outcome = latest_run(home)
    if outcome is None:
        raise background.ProgramFailed(
            f"Airflow ended well, yet the repository knows of no run. Its output: {log}"
        )
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
