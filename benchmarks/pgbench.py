"""pgbench from the embedded server's own programs: many users at once, each with one small statement."""

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.by_hand import command_environment
from benchmarks.databases import Database

_RATE = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)


@dataclass(frozen=True)
class Users:
    """How many connections, and for how many seconds."""

    clients: int
    seconds: int
    settings: Mapping[str, str] = field(default_factory=dict)  #: of their sessions


def transactions_per_second(database: Database, script: str, users: Users) -> float:
    """What the users together got done of the script, each on its own connection, as fast as each can.

    Raises CalledProcessError when a statement fails.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        ran = subprocess.run(
            _command(database.server.bin / "pgbench", Path(file.name), users),
            env={**command_environment(database), "PGOPTIONS": _options(users.settings)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    (rate,) = _RATE.findall(ran.stdout)
    return float(rate)


def _options(settings: Mapping[str, str]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def _command(program: Path, script: Path, users: Users) -> list[str]:
    options = ["--no-vacuum", f"--client={users.clients}", f"--time={users.seconds}", f"--file={script}"]
    return [str(program), *options]
