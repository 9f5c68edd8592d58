"""pgbench from the embedded server's own programs: many users at once, each with one small transaction."""

import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.by_hand import command_environment
from benchmarks.databases import Database
from demo.background import ProgramFailed

_RATE = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)


@dataclass(frozen=True)
class Users:
    """How many connections, and for how many seconds."""

    clients: int
    seconds: int
    settings: Mapping[str, str] = field(default_factory=dict)  #: of their sessions
    rate: int = 0  #: transactions a second of all together; 0: as fast as each can


def fill(database: Database, schema: str, accounts: int) -> None:
    """pgbench's own tables in a schema; it makes accounts by the hundred thousand."""
    scale = max(1, accounts // 100_000)
    _run(database, ["--initialize", "--quiet", f"--scale={scale}"], {"search_path": schema})


def transactions_per_second(database: Database, script: str, users: Users) -> float:
    """The users' transactions of the script together, each on its own connection.

    Raises ProgramFailed when a statement fails.
    """
    with _file(script) as file:
        return _rate(database, file, users)


def run_transactions(database: Database, script: str, clients: int, count: int) -> None:
    """So many transactions of the script by all clients together, as fast as each can.

    Raises ProgramFailed when a statement fails.
    """
    with _file(script) as file:
        _run(database, ["--no-vacuum", f"--client={clients}", f"--transactions={count // clients}", file], {})


def simple_updates_per_second(database: Database, users: Users) -> float:
    """The same of a transaction that pgbench has built in: update a row, read it, and add to a history."""
    return _rate(database, "--builtin=simple-update", users)


@contextmanager
def _file(script: str) -> Iterator[str]:
    """The option that names a file with the script."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        yield f"--file={file.name}"


def _rate(database: Database, script: str, users: Users) -> float:
    options = ["--no-vacuum", f"--client={users.clients}", f"--time={users.seconds}", script]
    if users.rate:
        options.append(f"--rate={users.rate}")
    (rate,) = _RATE.findall(_run(database, options, users.settings))
    return float(rate)


def _run(database: Database, options: list[str], settings: Mapping[str, str]) -> str:
    """Pgbench's words about its result. Raises ProgramFailed with what else it has said."""
    ran = subprocess.run(
        [str(database.server.bin / "pgbench"), *options],
        env={**command_environment(database), "PGOPTIONS": _options(settings)},
        capture_output=True,
        check=False,
        text=True,
    )
    if ran.returncode:
        raise ProgramFailed(f"`pgbench` ended with status {ran.returncode}:\n{ran.stderr}")
    return ran.stdout


def _options(settings: Mapping[str, str]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())
