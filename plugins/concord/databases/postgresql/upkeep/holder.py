"""One site's word to what may be forgotten of a table: what it holds, and whether all of its links have sent it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import Connection, one, rows, run
from concord.databases.postgresql.facts.plans import BY_KEY, LOOK_UP
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.upkeep import flagged_rows
from concord.databases.postgresql.upkeep.outgoing_link import OutgoingLink

#: Blocks of a shadow table that are looked at by one question: some thousand rows, which one transaction forgets.
BLOCKS = 128


class Version(NamedTuple):
    """The parts that make the same version at two sites."""

    key: tuple[str, ...]  #: texts
    origin: str
    changed_at: int
    derived: int
    deleted: bool  #: a tombstone's


class Stand(NamedTuple):
    """One site's word to a version."""

    same: bool = False  #: it holds that very one
    goes: bool = False  #: and may forget it, as far as its own links tell
    agreed: bool = False  #: an earlier cleanup has published it
    nothing: bool = False  #: it holds no version of the key
    outside: bool = False  #: the key is outside of its row filter, and stays so
    newest: int = 0  #: µs; the newest stamp that its version has seen: a loser's may be newer than its own
    waiting: tuple[str, ...] = ()  #: unheeded links that have not sent it


@dataclass(frozen=True, slots=True)
class Limits:
    """The newest stamps (µs) that may go."""

    tombstones: int
    living: int | None  #: of living rows; None: of none


@dataclass(frozen=True, slots=True, eq=False)
class Holder:
    """One table at one site that takes part in the agreement."""

    site: str
    connection: Connection
    shapes: tuple[Shape, ...]  #: one for each row filter that shares the table there
    heeded: tuple[OutgoingLink, ...]  #: links that must have sent a version before it goes
    unheeded: tuple[OutgoingLink, ...]  #: links that a person has said not to wait for
    skew: int  #: µs that a stamp may be ahead of the clock here

    @property
    def shape(self) -> Shape:
        return self.shapes[0]

    @property
    def latest(self) -> str:
        """SQL: the latest stamp (µs) that is not from the future here."""
        return f"{row_version.NOW} + {self.skew}"

    @property
    def table(self) -> str:
        return self.shape.name

    @property
    def _filtered(self) -> list[Shape]:
        return [shape for shape in self.shapes if shape.where]

    def old(self, limits: Limits) -> str:
        """Condition on a shadow row `p`: it is of an age to go, whoever still waits for it."""
        living = "false" if limits.living is None else f"p.changed_at <= {limits.living}"
        return f"(p.deleted OR (p.origin <> '' AND {living}))"

    def may_go(self, limits: Limits) -> str:
        """Condition on a shadow row `p`. A version that a row still waits to replace is no common history."""
        shape, base = self.shape, f"SELECT 1 FROM {self.shape.table.sql} t"
        same = shape.same_key("t", "p")
        kinds = [
            f"p.deleted AND p.changed_at <= {limits.tombstones} AND NOT {row_version.beyond('p.vector', self.latest)}"
            f" AND NOT EXISTS ({base} WHERE {same}{flagged_rows.that_stay(shape)})"
        ]
        if limits.living is not None:
            kinds.append(
                f"NOT p.deleted AND p.out_of_scope IS NULL AND p.changed_at <= {limits.living}"
                f" AND {_NEWEST} <= {limits.living} AND EXISTS ({base} WHERE {same})"
            )
        waits = f"EXISTS (SELECT 1 FROM concord.waiting w WHERE w.table_name = {literal(self.table)}"
        waits = f"{waits}) AND {waits} AND w.key = to_jsonb(ARRAY[{self._key}]))"
        return (
            f"p.origin <> '' AND ({' OR '.join(f'({kind})' for kind in kinds)}) AND {self.passed}"
            f" AND NOT ({waits})"
        )

    @property
    def passed(self) -> str:
        """Condition on a shadow row `p`: every link that is waited for has sent it."""
        return " AND ".join(f"NOT ({link.waiting(self.table)})" for link in self.heeded) or "true"

    @property
    def _key(self) -> str:
        return ", ".join(self.shape.canonical_key("p"))

    @property
    def _told(self) -> str:
        waiting = [
            f"CASE WHEN {link.waiting(self.table)} THEN {literal(link.name)} END"
            for link in self.unheeded
            if link.session
        ]
        return f"p.agreed, {_NEWEST}, array_remove(ARRAY[{', '.join(waiting)}]::text[], NULL)"

    @property
    def blocks(self) -> int:
        """Of the shadow table."""
        (found,) = one(
            self.connection, f"SELECT {self.shape.shadow.bytes} / current_setting('block_size')::int"
        )
        return int(found)

    def batches(self, limits: Limits) -> Iterator[tuple[int, dict[Version, Stand]]]:
        """The versions that may go, a range of blocks at a time, and how many blocks that were. The table is read
        once."""
        blocks = self.blocks
        for first in range(0, blocks, BLOCKS):
            yield min(BLOCKS, blocks - first), self._between(first, first + BLOCKS, limits)

    def _between(self, first: int, end: int, limits: Limits) -> dict[Version, Stand]:
        query = (
            f"SELECT ARRAY[{self._key}], p.origin, p.changed_at, p.derived, p.deleted, {self._told}"
            f" FROM {self.shape.shadow.sql} p WHERE p.ctid >= '({first},0)'::tid AND p.ctid < '({end},0)'::tid"
            f" AND {self.may_go(limits)}"
        )
        return {
            Version(tuple(key), *version): Stand(True, True, agreed, newest=newest, waiting=tuple(links))
            for key, *version, agreed, newest, links in self._looked_up(query)
        }

    def stands(self, versions: Sequence[Version], limits: Limits) -> list[Stand]:
        """The site's word to versions that another one may forget, in their order."""
        shape, dot = self.shape, "(p.origin, p.changed_at, p.derived) = (g.origin, g.changed_at, g.derived)"
        same = f"coalesce({dot} AND p.deleted = g.deleted, false)"
        query = (
            f"SELECT {same}, {same} AND {self.may_go(limits)}, coalesce({same} AND p.agreed, false),"
            f" coalesce(p.origin = '', true), {self._outside()}, {self._told}"
            f" FROM {listed(versions)} LEFT JOIN {shape.shadow.sql} p ON {listed_key(shape, 'p')} ORDER BY g.n"
        )
        return [
            Stand(same, goes, agreed, nothing, outside, newest or 0, tuple(links))
            for same, goes, agreed, nothing, outside, _, newest, links in self._looked_up(query)
        ]

    def _outside(self) -> str:
        """Condition on a listed version: it did not touch this site, and will not (rule 9)."""
        if not self._filtered:
            return "false"
        base = f"SELECT 1 FROM {self.shape.table.sql} t WHERE {listed_key(self.shape, 't')}"
        private = " OR ".join(f"NOT {shape.in_scope('t')}" for shape in self._filtered)
        return (
            "CASE WHEN g.deleted THEN coalesce(p.out_of_scope IS NOT NULL, false)"
            f" OR EXISTS ({base} AND ({private})) ELSE coalesce(p.origin = '', true) AND NOT EXISTS ({base}) END"
        )

    def _looked_up(self, query: str) -> list[tuple[Any, ...]]:
        """The plan follows the versions, and never walks a table; a mapped key no index finds."""
        with self.connection.transaction():
            if not self.shape.manipulation:
                run(self.connection, LOOK_UP, *BY_KEY)
            return rows(self.connection, query)


#: The newest stamp that a shadow row `p` has seen; most vectors have no origin but the version's own.
_NEWEST = (
    "CASE WHEN p.vector - p.origin = '{}' THEN p.changed_at"
    " ELSE greatest(p.changed_at, concord.vector_newest(p.vector)) END"
)


def listed(versions: Sequence[Version]) -> str:
    """The versions as a relation `g`: their keys in canonical texts k0, k1, …, and their number n."""
    keys = [*zip(*(each.key for each in versions), strict=True)]
    rest = [*zip(*(each[1:] for each in versions), strict=True)]
    types = [*("text" for _ in keys), "text", "bigint", "integer", "boolean"]
    arrays = ", ".join(
        f"{_array(column)}::{kind}[]" for column, kind in zip((*keys, *rest), types, strict=True)
    )
    names = ", ".join([*(f"k{place}" for place in range(len(keys))), *Version._fields[1:], "n"])
    return f"unnest({arrays}) WITH ORDINALITY g ({names})"


def _array(values: Sequence[object]) -> str:
    """One constant: an expression for each element would take longer to read than to look up."""
    if values and not isinstance(values[0], str):
        return literal("{" + ",".join(map(str, values)) + "}")
    escaped = (str(value).replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return literal('{"' + '","'.join(escaped) + '"}' if values else "{}")


def listed_key(shape: Shape, row: str) -> str:
    """The key of `row` is the one that `g` lists as k0, k1, … in canonical texts."""
    if shape.manipulation:
        texts = shape.canonical_key(row)
        return " AND ".join(f"{text} = g.k{place}" for place, text in enumerate(texts))
    return " AND ".join(
        f"{shape.key_in(row, column)} = g.k{place}::{column.type.sql}"
        for place, column in enumerate(shape.key)
    )
