"""A publisher's operations for those that are no subscriber (S0-41), whichever database they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

#: A row's columns with their values, as the publisher's own exact texts.
Texts = Mapping[str, str | None]


class Operation(NamedTuple):
    """One row that a transaction wrote, or a table that it emptied."""

    number: int  #: of its entry
    committed_at: datetime
    seq: int  #: its place in the entry, from 1 on
    table: str  #: in the replication set
    operation: str  #: insert, update, delete or truncate
    key: Texts | None  #: of the row before the operation; of an insert, of the new row
    row: Texts | None  #: after the operation; a long value that it left as it was is absent


@dataclass(frozen=True, slots=True)
class ConsumedTable:
    """One published table: the types that Spark gives its columns."""

    name: str
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Whole:
    """Entries in the order of their commits, none of which is cut."""

    operations: Sequence[Operation]
    level: int  #: the number of the last one


class ConsumerMemory(Protocol):
    """The publisher's memory of the tables that a consumer reads."""

    def begin_consumed(self, published: Any) -> None:
        """The consumer reads the tables as they are from here on."""

    def gaps(self, published: Any) -> Sequence[str]:
        """The tables of which the consumer misses operations since it began, by name."""
