"""Bucardo at work on a pair of databases: its control database in London, its daemon, its files below one
directory."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from psycopg import sql
from psycopg.errors import DuplicateObject

from benchmarks.bookings import TABLE
from benchmarks.comparison import WrongResult
from benchmarks.databases import Database, Pair
from benchmarks.rival import PATIENCE, Program, Rival
from demo import background
from embedded import session

SYNC = "bookings"
USER = "bucardo"  #: the one name that its installation accepts

#: Its defaults but for these, which leave tidying up to the benchmark, and end it with its servers.
_SETTINGS = {"bucardo_vac": "0", "mcp_dbproblem_sleep": "0"}

#: The settings that make it faster.
_TUNED = {
    "mcp_loop_sleep": "0.05",
    "ctl_sleep": "0.05",
    "kid_sleep": "0.05",
    "statement_chunk_size": "10000000",  # one `= ANY`: twice as fast as lists of 6,000 keys
}

_FILES = {
    "reason_file": "restart.reason",
    "warning_file": "warning.log",
    "log_conflict_file": "conflict.log",
}

#: The daemon's own work for this, by default every 30 s.
_PURGE = "SELECT bucardo.bucardo_purge_delta('0 seconds')"

_START_SECONDS = 60.0


@dataclass(frozen=True)
class _Bucardo:
    """One installation, and how to speak to it."""

    program: Program
    pair: Pair
    directory: Path

    @property
    def control(self) -> Database:
        """It bears one name only, hence two installations have it on different servers."""
        server = self.pair.capetown if self.program is Program.TUNED else self.pair.london
        return replace(server, name="bucardo")

    def run(self, *words: str) -> None:
        """Its command line. Raises ProgramFailed with all that Bucardo has said so far."""
        command = ["bucardo", "--bucardorc", str(self.directory / "bucardorc"), *words]
        with (self.directory / "output").open("a+") as output:  # a pipe would be held by the daemon
            ran = subprocess.run(
                command,
                check=False,
                cwd=self.directory,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            output.seek(0)
            said = output.read()
        if ran.returncode:
            raise background.ProgramFailed(
                f"`bucardo {words[0]}` ended with status {ran.returncode}:\n{said}"
            )

    def _environment(self) -> dict[str, str]:
        place = {"HOME": str(self.directory), "PGPASSFILE": str(self.directory / "pgpass")}
        return {**os.environ, **place, "PGBINDIR": str(self.pair.london.server.bin)}

    def write_files(self) -> None:
        """Where everything is, and the passwords: an argument would show in the list of processes."""
        self.directory.mkdir()
        server = self.control.server
        options = {"dbhost": server.host, "dbport": server.port, "dbname": self.control.name, "dbuser": USER}
        places = {"piddir": self.directory, "logdest": self.directory}
        lines = [f"{name} = {value}\n" for name, value in {**options, **places}.items()]
        (self.directory / "bucardorc").write_text("".join(lines))
        passwords = self.directory / "pgpass"
        passwords.touch(0o600)
        passwords.write_text("".join(f"{_address(each)}:{each.password}\n" for each in self.pair.all))

    def install(self) -> None:
        for each in self.pair.all:
            create = sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {}")
            # The other installation may have made it, with the same password.
            with each.connect() as superuser, suppress(DuplicateObject):
                superuser.execute(create.format(sql.Identifier(USER), sql.Literal(each.password)))
        self.run("install", "--batch")
        files = {name: str(self.directory / file) for name, file in _FILES.items()}
        tuned = _TUNED if self.program is Program.TUNED else {}
        self.run("set", *(f"{name}={value}" for name, value in {**_SETTINGS, **tuned, **files}.items()))

    def add_sync(self) -> None:
        """Both databases are sources; the newer of two edits of a row wins."""
        with self.control.connect() as control:
            for each in self.pair.all:  # as `bucardo add db`, which takes the password as an argument
                server = each.server
                control.execute(
                    "INSERT INTO bucardo.db (name, dbhost, dbport, dbname, dbuser, dbpass)"
                    " VALUES (%s, %s, %s, %s, %s, %s)",
                    (each.name, server.host, str(server.port), each.name, USER, each.password),
                )
        sources = ",".join(f"{each.name}:source" for each in self.pair.all)
        options = ("conflict_strategy=bucardo_latest", "autokick=0")
        self.run("add", "sync", SYNC, f"dbs={sources}", f"tables={TABLE.name}", *options)

    def start(self) -> None:
        """Start the daemon, and wait until it answers."""
        self.run("start")
        deadline = time.monotonic() + _START_SECONDS
        while not self.kick(1.0):  # lost when its processes do not listen yet
            if time.monotonic() > deadline:
                raise WrongResult(f"Bucardo's daemon does not answer. {self._last_words}")

    def kick(self, patience: float) -> bool:
        """The output of `bucardo kick` with a wait, which looks once a second; False when nothing was answered."""
        done, killed = f"bucardo_syncdone_{SYNC}", f"bucardo_synckill_{SYNC}"
        with self.control.connect() as control:
            for channel in (done, killed):
                control.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            control.execute(sql.SQL("NOTIFY {}").format(sql.Identifier(f"bucardo_kick_sync_{SYNC}")))
            answer = next(control.notifies(timeout=patience, stop_after=1), None)
        if answer is not None and answer.channel == killed:
            raise WrongResult(f"Bucardo's sync was killed. {self._last_words}")
        return answer is not None

    def carry(self) -> float:
        began = time.monotonic()
        if not self.kick(PATIENCE):
            raise WrongResult(f"Bucardo did not end its sync. {self._last_words}")
        return time.monotonic() - began

    def purge(self) -> None:
        self.pair.everywhere(_PURGE)

    def end(self) -> None:
        """All its processes are in one session; the master's process id stands in a file."""
        file = self.directory / "bucardo.mcp.pid"
        with suppress(FileNotFoundError, ProcessLookupError):  # it has not begun, or has ended by itself
            session.stop(os.getsid(int(file.read_text().split()[0])))

    @property
    def _last_words(self) -> str:
        """Its logs are removed with the servers."""
        log = self.directory / "log.bucardo"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join(["Its log ends:", *lines[-10:]])


@contextmanager
def at_work(program: Program, pair: Pair, directory: Path) -> Iterator[Rival]:
    """Bucardo with one sync of the table, which waits for a kick; all its processes are gone when the block ends.

    `program`: as it is installed, or tuned.
    """
    made = _Bucardo(program, pair, directory)
    made.write_files()
    made.install()
    made.add_sync()
    try:
        made.start()
        yield Rival(program, pair, made.carry, made.purge)
    finally:
        made.end()


def _address(database: Database) -> str:
    return f"{database.server.host}:{database.server.port}:*:{USER}"
