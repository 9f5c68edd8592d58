"""The statements that this process sends to each database, and the time that these take."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Self
from unittest.mock import patch

import psycopg


@dataclass
class Statements:
    """Statements sent to one database."""

    sent: int = 0
    round_trips: int = 0
    milliseconds: float = 0.0  #: of the caller, who waits for the answers
    sessions: set[int] = field(default_factory=set)  #: by their processes

    def copy(self) -> "Statements":
        """As they are now."""
        return Statements(self.sent, self.round_trips, self.milliseconds, set(self.sessions))

    @property
    def processor(self) -> float:
        """Milliseconds of the processor that its sessions have had since they began, their logins included.

        Unlike the caller's time it does not depend on what else the machine does. It needs Linux, and a server on this
        machine.
        """
        return sum(_processor(session) for session in self.sessions)


def _processor(process: int) -> float:
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e6


@contextmanager
def counted() -> Iterator[Mapping[str, Statements]]:
    """By the databases' names, those of Concord's connections that are opened in the block. Its applications are
    called `concord`, or begin so."""
    found: dict[str, Statements] = {}
    opened = psycopg.connect

    class Counting(psycopg.Cursor[Any]):
        def execute(self, *args: Any, **kwargs: Any) -> Self:
            its = found[self.connection.info.dbname]
            began = perf_counter()
            try:
                return super().execute(*args, **kwargs)
            finally:
                its.milliseconds += (perf_counter() - began) * 1000
                its.round_trips += 1
                its.sent += 1

        def nextset(self) -> bool | None:
            more = super().nextset()
            found[self.connection.info.dbname].sent += bool(more)
            return more

    def connect(*args: Any, **kwargs: Any) -> psycopg.Connection[Any]:
        connection = opened(*args, **kwargs)
        if (connection.info.parameter_status("application_name") or "").startswith("concord"):
            found.setdefault(connection.info.dbname, Statements()).sessions.add(connection.info.backend_pid)
            connection.cursor_factory = Counting
        return connection

    with patch.object(psycopg, "connect", connect):
        yield found
