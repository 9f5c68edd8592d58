"""A soak: writers at every site, links in a loop, and one fault after the other, for as long as it is asked for. At the
end everybody rests, and the account that the databases themselves have kept must show no violation.

    make soak MINUTES=10        or        python -m tests.soak --minutes 10 --seed 7
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

from concord.machine.java import java_home
from concord.messages.errors import ConcordError
from embedded.postgres import Server
from spark_jobs.session import start
from tests.given import version_account
from tests.given.link_steps import STEPS
from tests.given.many_sites import Link, Network, Topology, begin_network
from tests.given.random_writers import KEYS, Writer
from tests.given.releases import release_of
from tests.given.site import Site, create_logins

PROJECT = Path(__file__).resolve().parents[1]
ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text)",
    f"INSERT INTO item SELECT n, 'common ' || n FROM generate_series(0, {KEYS - 1}, 2) n",
)
MESH = Topology(
    "mesh", ("oslo", "paris", "quito"), (("oslo", "paris"), ("oslo", "quito"), ("paris", "quito"))
)
#: The answers that a link may give while servers are restarted under it and other runs overtake it.
TOLERATED = {"site_unavailable", "write_contended", "lease_lost"}
#: The same, as a driver that nobody asks for a code ends with them.
_TOLERATED_NAMES = ("SiteUnavailable", "WriteContended", "LeaseLost")
REPORT_EVERY = 10.0  #: seconds


class Crash(BaseException):
    """The driver dies here: nothing catches it."""


class Tireless(Writer):
    """A writer that logs in again when its server has gone."""

    def run(self) -> None:
        while not self._stop_writing.is_set():
            try:
                super().run()
            except psycopg.Error as error:
                self.errors[type(error).__name__] += 1
            time.sleep(0.1)

    def _transaction(self, connection: psycopg.Connection[object]) -> None:
        super()._transaction(connection)
        if connection.closed:
            raise psycopg.OperationalError("the server has gone")


@dataclass
class Soak:
    """Sites under load. `server` is None where it is not ours to kill."""

    network: Network
    seed: str
    server: Server | None = None
    processes: bool = True  #: let some links be processes of their own, to be killed by a signal
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    _restarting: threading.Lock = field(default_factory=threading.Lock)

    def run(self, seconds: float, say: Callable[[str], object] = print, *, writers: int = 2) -> None:
        """Load and faults for so long, then rest; whatever is wrong stands in `violations`."""
        stop = threading.Event()
        version_account.install(self.network)
        people = [
            Tireless(site, f"{site.name} {number}", self.seed, stop)
            for site in self.network.sites
            for number in range(writers)
        ]
        for each in people:
            each.start()
        ends = time.monotonic() + seconds
        with ThreadPoolExecutor() as pool:
            work = [pool.submit(self._until, ends, pair) for pair in self.network.topology.pairs]
            work += [pool.submit(self._restart_now_and_then, ends)] if self.server else []
            self._report_until(ends, people, say)
            for each in work:
                each.result()
        stop.set()
        for each in people:
            each.join()
        self.counts["transactions"] = sum(each.committed for each in people)
        self._log_in_again()
        self.network.settle()
        self.violations += violations(self.network)
        say(f"at rest: {self}")

    def __str__(self) -> str:
        told = ", ".join(f"{what}: {count}" for what, count in sorted(self.counts.items()))
        return f"{told}; violations: {len(self.violations)}"

    def _report_until(self, ends: float, people: list[Tireless], say: Callable[[str], object]) -> None:
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(REPORT_EVERY, left))
            self.counts["transactions"] = sum(each.committed for each in people)
            say(f"{max(0, ends - time.monotonic()):.0f} s left: {self}")

    def _until(self, ends: float, pair: Link) -> None:
        """Both links of a pair in turns; some die on the way."""
        chance = random.Random(f"{self.seed} {pair}")
        while time.monotonic() < ends:
            for link in (pair, pair[::-1]):
                self._link(link, chance)

    def _link(self, link: Link, chance: random.Random) -> None:
        luck = chance.random()
        try:
            if self.processes and luck < 0.03:
                self._killed_process(link, chance)
                return
            step = chance.choice(STEPS) if luck < 0.25 else ""
            self.network.run(*link, _dying_at(step))
            self.counts["links"] += 1
        except Crash:
            self.counts["links that died"] += 1
        except ConcordError as error:
            self.counts[error.code] += 1
            if error.code not in TOLERATED:
                self.violations.append(f"{link}: {error.message}")
        except Exception as error:  # noqa: BLE001 - whatever is no error of ours has no words for a person
            self.violations.append(f"{link}: {type(error).__name__}: {error}")

    def _killed_process(self, link: Link, chance: random.Random) -> None:
        """A driver of its own, which kills itself by a signal."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "job.json"
            file.touch(mode=0o600)
            file.write_text(self.network.job(*link).model_dump_json())
            driver = [sys.executable, "-m", "tests.given.killed_driver", str(file), chance.choice(STEPS)]
            environment = os.environ | {"PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell"}
            done = subprocess.run(
                driver, cwd=PROJECT, env=environment, check=False, capture_output=True, timeout=300
            )
        self.counts["killed processes"] += done.returncode == -signal.SIGKILL
        said = done.stderr.decode()
        if done.returncode > 0 and not any(name in said for name in _TOLERATED_NAMES):
            self.violations.append(f"{link}: a driver of its own ended with {said[-500:]}")

    def _restart_now_and_then(self, ends: float) -> None:
        """Every 20 to 40 s the server loses its power."""
        chance = random.Random(f"{self.seed} restarts")
        assert self.server is not None, "asked for where there is one"
        while time.monotonic() + 5 < ends:
            time.sleep(min(chance.uniform(20, 40), max(0, ends - time.monotonic() - 5)))
            self.server.crash()
            self.server.start()
            for site in self.network.sites:
                site.port = self.server.port
            self.counts["restarts"] += 1

    def _log_in_again(self) -> None:
        for site in self.network.sites:
            site.connection.close()
            site.connection = site.log_in(site.superuser)


def _dying_at(dies_at: str) -> Callable[[str], None]:
    def progress(step: str) -> None:
        if step == dies_at:
            raise Crash

    return progress


def violations(network: Network) -> Iterator[str]:
    """Of a network at rest, by the account of its databases."""
    account = version_account.lines(network)
    if not network.equal:
        yield "I1: the sites differ"
    yield from (f"I2: lost: {line}" for line in version_account.unaccounted(account, network))
    if any(report.total("acquired") for report in network.round()):
        yield "I5: a link carries something at rest"
    yield from (f"I9: {line}" for line in version_account.steps_back(account))
    yield from (f"I9: behind the account: {pair}" for pair in version_account.gaps(account))
    yield from (f"I11: {dot}: {tokens}" for dot, tokens in version_account.changed_contents(account).items())
    yield from (f"I12: no conflict: {conflict['id']}" for conflict in version_account.needless(network))
    yield from (
        f"I12: wrong images: {conflict['id']}" for conflict in version_account.misrecorded(account, network)
    )


@contextmanager
def mesh(folder: Path, spark: Callable[[], SparkSession]) -> Iterator[tuple[Network, Server]]:
    """Three sites, each synchronized with each, on a server of their own."""
    server = Server.create(folder / "server", version=release_of("london"))
    try:
        with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
            create_logins(superuser)

        def make_site(name: str) -> Site:
            server.create_database(name)
            return Site(name, server.host, server.port, name, server.superuser, server.password)

        yield begin_network(MESH, make_site, ITEM, spark), server
    finally:
        server.remove()


def main() -> int:
    """Exit code 1 when anything was violated."""
    asked = argparse.ArgumentParser(description="Writers, links and faults; then rest, and every invariant.")
    asked.add_argument("--minutes", type=float, default=2.0)
    asked.add_argument("--seed", default=str(random.randrange(2**32)))
    given = asked.parse_args()
    os.environ |= {"JAVA_HOME": str(java_home()), "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}
    os.environ |= {"PYTHONPATH": f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}", "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    print(f"seed {given.seed}", flush=True)
    session = start()
    with tempfile.TemporaryDirectory() as folder, mesh(Path(folder), lambda: session) as (network, server):
        soak = Soak(network, given.seed, server)
        soak.run(given.minutes * 60, lambda line: print(line, flush=True))
    session.stop()
    print(*soak.violations, sep="\n")
    return 1 if soak.violations else 0


if __name__ == "__main__":
    sys.exit(main())
