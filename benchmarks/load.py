"""`python -m benchmarks.load`: the first load of a large table while its users work, killed and resumed."""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
from rich.console import Console

from benchmarks import bookings, databases
from benchmarks.by_hand import command_environment
from benchmarks.comparison import WrongResult, check_whole
from benchmarks.databases import Database, Databases
from benchmarks.initialization import job, provision_pair
from benchmarks.link_run import run_link
from benchmarks.peak_memory import PeakMemory
from concord.jobs.initialization import InitializationJob, InitializationReport
from concord.jobs.link import Direction
from concord.orchestration.tasks.job_files import job_files
from concord.orchestration.tasks.spark_settings import environment
from demo import terminal, workspace
from spark_jobs.application import module

DONE = "SELECT coalesce(max(looked_at), 0) FROM concord.initialization"


@dataclass
class Users:
    """They change the source all the time, `rate` rows a second: eight updates, an insert and a delete of ten."""

    source: Database
    rows: int
    rate: int
    changed: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Users":
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        began = time.monotonic()
        with self.source.connect() as connection:
            while not self._over.wait(max(0.0, began + self.changed / self.rate - time.monotonic())):
                self._change(connection, self.changed * 7_919 % self.rows + 1)
                self.changed += 1

    def _change(self, connection: psycopg.Connection[object], key: int) -> None:
        kind = self.changed % 10
        if kind == 0:
            statement = f"DELETE FROM public.bookings WHERE id = {key}"
        elif kind == 1:
            statement = f"INSERT INTO public.bookings (id, miles) VALUES ({self.rows + self.changed}, 1)"
        else:
            statement = f"UPDATE public.bookings SET miles = miles + 1 WHERE id = {key}"
        connection.execute(statement.encode())


@dataclass
class Load:
    """The time and memory of one load, over all its lives."""

    seconds: float = 0.0
    memory: int = 0
    kills: int = 0


def load(made: Databases, rows: int, kills: int, *, late_indexes: bool) -> Load:
    """Load Cape Town from London; killed at equal parts of the way, and resumed each time."""
    installers = {each.name: each.credentials(each.server.superuser) for each in (made.london, made.capetown)}
    asked: dict[str, Any] = {"late_indexes": late_indexes, "installers": installers if late_indexes else {}}
    result = Load()
    marks = [rows * (place + 1) // (kills + 1) for place in range(kills)]
    for mark in [*marks, None]:
        initialization = InitializationJob(link=job(made), **asked)
        with job_files(initialization, InitializationReport) as files:
            # As a task over Connect: a Python process, whose work asks Spark for nothing.
            command = [sys.executable, str(module("initialize")), str(files.job), str(files.report)]
            began = time.monotonic()
            process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
            with PeakMemory(process.pid) as memory:
                if mark is None:
                    process.wait()
                else:
                    _kill_at(process, made.capetown, mark)
            result.seconds += time.monotonic() - began
            result.memory = max(result.memory, memory.bytes)
            result.kills += mark is not None
            if mark is None:
                files.read_report()
    return result


def _kill_at(process: "subprocess.Popen[bytes]", target: Database, mark: int) -> None:
    while process.poll() is None and target.row(DONE)[0] < mark:
        time.sleep(0.2)
    if process.poll() is not None:
        raise WrongResult(f"the load ended before {mark} rows were there")
    for each in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
        with suppress(psutil.Error):
            os.kill(each.pid, signal.SIGKILL)
    process.wait()


def dump_and_restore(made: Databases) -> float:
    """Seconds of `pg_dump | psql` of the same table, its indexes included."""
    began = time.monotonic()
    source, target = made.london, made.by_hand
    dump = [str(source.server.bin / "pg_dump"), "--table=public.bookings"]
    with subprocess.Popen(dump, env=command_environment(source), stdout=subprocess.PIPE) as dumping:
        psql = [str(target.server.bin / "psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
        subprocess.run(
            psql, env=command_environment(target), stdin=dumping.stdout, stdout=subprocess.DEVNULL, check=True
        )
    return time.monotonic() - began


def measure(
    made: Databases, rows: int, rate: int, kills: int, console: Console, *, late_indexes: bool = True
) -> None:
    """All of it, printed. Raises WrongResult when the sites differ at the end."""
    london, capetown, _ = made.all
    for each in made.all:
        each.server.drop_database(each.name)
        each.server.create_database(each.name)
    london.run(*bookings.creation(rows))
    capetown.run(*bookings.creation(0))
    by_hand = dump_and_restore(made)
    console.print(
        f"pg_dump | psql: {rows:,} rows in {by_hand:.1f} s, {rows / by_hand:,.0f} rows/s", highlight=False
    )
    provision_pair(made)
    with Users(london, rows, rate) as users:
        loaded = load(made, rows, kills, late_indexes=late_indexes)
    console.print(
        f"load: {rows:,} rows in {loaded.seconds:.1f} s, {rows / loaded.seconds:,.0f} rows/s, killed and resumed"
        f" {loaded.kills} times, {users.changed:,} changes meanwhile, {loaded.memory / 2**20:,.0f} MiB at most,"
        f" {loaded.seconds / by_hand:.2f} times as long",
        highlight=False,
    )
    for direction in (Direction.FORWARD, Direction.REVERSE) * 2:
        run_link(job(made, direction))
    console.print(f"equal at the end: {check_whole((london, capetown), 'loaded'):,} rows", highlight=False)


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when both sites are equal at the end."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    made.add_argument("--rows", type=int, default=5_000_000)
    made.add_argument("--rate", type=int, default=200, help="changes per second at the source")
    made.add_argument("--kills", type=int, default=3)
    made.add_argument("--late-indexes", action=argparse.BooleanOptionalAction, default=True)
    made.add_argument("--directory", type=Path, default=workspace.DEFAULT / "load", help="for the servers")
    options = made.parse_args(arguments)
    directory = options.directory.absolute()

    def run() -> int:
        with databases.in_workspace(directory) as servers:
            console, asked = terminal.console(), (options.rows, options.rate, options.kills)
            measure(servers, *asked, console, late_indexes=options.late_indexes)
        return 0

    return terminal.run(run, directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
