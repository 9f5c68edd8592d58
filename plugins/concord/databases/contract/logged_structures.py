"""The structures of published tables at the time at which their operations were logged."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from concord.messages.errors import StructureChanged

#: By table, as its publisher names it: its columns in the log that waits, where it has others by now.
LoggedStructures = Mapping[int, Any]
NOTHING_LOGGED: LoggedStructures = MappingProxyType({})


class LogAltered(StructureChanged):
    """The log goes on with other columns of a table than those for which it is read. All entries before were read."""

    def __init__(self, message: str, table: int, structure: object) -> None:
        super().__init__(message)
        self.table, self.structure = table, structure
