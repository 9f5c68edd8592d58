"""Which account runs an embedded PostgreSQL server; PostgreSQL refuses to be run by root."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

#: The caller's PGOPTIONS, LD_LIBRARY_PATH and locale must not change what the server does.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


@dataclass(frozen=True)
class Account:
    """A system account, and whether this process must switch to it."""

    user: int
    group: int
    foreign: bool

    @classmethod
    def of_servers(cls) -> "Account":
        """The present account, or `nobody` when that is root."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid(), foreign=False)
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid, foreign=True)

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; the result carries its exit status and all that it printed."""
        return subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self._process_settings(),
        )

    def start(
        self, command: Sequence[str | Path], *, stdin: int = subprocess.DEVNULL, output: IO[bytes] | int
    ) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own, so that Ctrl-C in the terminal does not reach it."""
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **self._process_settings(),
        )

    def can_read(self, path: Path) -> bool:
        """Whether this account may read the file or enter the directory, all parents included."""
        if not self.foreign:
            return True
        return self.run(["test", "-x" if path.is_dir() else "-r", path]).returncode == 0

    def give(self, path: Path) -> None:
        """Make this account the owner of a file or directory."""
        if self.foreign:
            os.chown(path, self.user, self.group)

    def _process_settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"cwd": "/", "env": ENVIRONMENT}
        if self.foreign:
            settings |= {"user": self.user, "group": self.group, "extra_groups": []}
        return settings
