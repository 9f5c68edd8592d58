"""How rows travel and are staged, whichever database reads or writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from concord.rules.policy import Policy
from concord.tables.manipulation import Manipulation
from concord.tables.row_filter import RowFilter
from concord.tables.structure import Structure
from concord.values.text_form import TextForm
from concord.versions.row_version import RowVersion

#: The row version as it travels beside the row: name → Spark type. The vector travels as JSON text.
VERSION_TYPES = {
    "origin": "string",
    "changed_at": "bigint",
    "derived": "int",
    "vector": "string",
    "deleted": "boolean",
    "born": "boolean",
    "out_of_scope": "boolean",  # the row has left the filter: the target keeps its version, not its content (rule 9)
}


class MappedShape(Protocol):
    """The columns of one table at one site, as far as a mapping asks for them."""

    @property
    def site(self) -> str:
        """Where the table stands."""

    @property
    def names(self) -> tuple[str, ...]:
        """The site's own columns that travel."""

    @property
    def key_names(self) -> tuple[str, ...]: ...

    @property
    def aliases(self) -> tuple[str, ...]:
        """Their names on the way, in the same order."""

    @property
    def spark_types(self) -> tuple[str, ...]: ...

    @property
    def text_forms(self) -> tuple[TextForm | None, ...]:
        """How each reads as text; None where texts of its type cannot be judged."""

    @property
    def manipulation(self) -> Manipulation:
        """Their types in canonical form."""

    @property
    def key_aliases(self) -> tuple[str, ...]: ...

    @property
    def key_is_private(self) -> bool:
        """No message tells which row it is about."""


class Shape(MappedShape, Protocol):
    """How the rows of one table travel."""

    @property
    def name(self) -> str:
        """The table's name in the replication set."""

    @property
    def where(self) -> RowFilter | None:
        """The rows that are shared, by canonical columns; None is all."""

    @property
    def relayed(self) -> Self:
        """The same where its rows go from database to database, and through no Arrow."""

    @property
    def base_types(self) -> Mapping[str, str]:
        """The columns that travel beside row and version where the table keeps before-images: name → Spark type."""

    @property
    def staged_texts(self) -> tuple[str, ...]:
        """That, and the new row of a decision of somebody else's function, as they are staged."""

    @property
    def policy(self) -> Policy:
        """How a conflict is decided."""

    @property
    def private(self) -> frozenset[str]:
        """The site's own columns of which no message tells a value."""

    @property
    def comparable_aliases(self) -> tuple[str, ...] | None:
        """Those by which Spark can tell whether both sites did the same thing to a key; None where it cannot."""

    @property
    def asked_aliases(self) -> Mapping[str, str]:
        """Of the canonical columns that a resolver must see, what they are called on the way."""

    @property
    def structure(self) -> Structure:
        """The canonical columns, comparable between sites."""

    def readable_with(self, other: Any) -> Shape:
        """The same, read so that rows that are equal as far as both sites can hold them read alike."""


class Staged(Protocol):
    """Rows of one table that executors wrote for the driver's transaction."""

    @property
    def shape(self) -> Shape: ...

    @property
    def relation(self) -> str: ...

    @property
    def rows(self) -> int: ...

    @property
    def types(self) -> Mapping[str, str]:
        """The staged columns of a row, by the names they travel under: the database's own types."""

    def believing(self, attempts: Sequence[int], rows: int) -> Staged:
        """The same place, counting only what these task attempts wrote (F57)."""


@dataclass(frozen=True, slots=True)
class Rebounding:
    """A row that was rewritten run after run, and the versions that meet now."""

    key: tuple[str, ...]  #: canonical
    arriving: RowVersion  #: without its vector, both
    present: RowVersion

    @property
    def dots(self) -> frozenset[object]:
        """The two versions, in no order."""
        return frozenset({self.arriving.dot, self.present.dot})

    def __str__(self) -> str:
        """`capetown#1/1772366400000000/0 over london#1/1772366300000000/0`: the key may be private."""
        arriving, present = ("/".join(map(str, version.dot)) for version in (self.arriving, self.present))
        return f"{arriving} over {present}"
