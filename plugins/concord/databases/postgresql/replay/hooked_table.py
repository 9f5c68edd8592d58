"""A table whose operations a hook sees before they are replayed: which rows these touch, and what is shown of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.replay.statements import Statements
from concord.rules.hook_function import Hooked, Word

_WORDS = "CASE s.operation WHEN 'I' THEN 'insert' WHEN 'D' THEN 'delete' WHEN 'T' THEN 'truncate' ELSE 'update' END"


class Operation(NamedTuple):
    """One operation on a table with a hook."""

    seq: int
    before: int  #: the last one of this entry that touches the same row; 0 for none
    alone: bool  #: of which nobody can say which rows it touches


@dataclass(frozen=True, slots=True)
class HookedTable:
    """A table of the replication, and its hook at this site."""

    table: ReplicatedTable
    hooked: Hooked

    @property
    def touched(self) -> str:
        """Which rows each operation touches, by their keys before and after."""
        keys = range(len(self.table.key))
        of = Statements(self.table, "s")
        new = [of.values[name] for name in self.table.key]
        old = [self.table.old("s", name) for name in self.table.key]
        names = ", ".join(f"k{at}" for at in keys)
        parts = [
            f"SELECT s.seq, {', '.join(f'{value} AS k{at}' for at, value in zip(keys, values, strict=True))}"
            f" FROM {self.table.staged} s WHERE {{within}} AND s.operation IN ({kinds})"
            for values, kinds in ((new, "'I', 'U', 'V'"), (old, "'U', 'V', 'D'"))
        ]
        before = f"lag(seq) OVER (PARTITION BY {names} ORDER BY seq)"
        return (
            f"SELECT seq, coalesce(max(before), 0) AS before, false AS alone FROM (SELECT seq, {before} AS before"
            f" FROM ({' UNION '.join(parts)}) k) b GROUP BY seq UNION ALL SELECT s.seq, 0, true FROM"
            f" {self.table.staged} s WHERE {{within}} AND s.operation = 'T'"
        )

    @property
    def shown(self) -> str:
        """The operations of some seqs, each with the row that it meets."""
        of = Statements(self.table, "s")
        old = f"s.operation IN ('U', 'V', 'D') AND {of.at_old_key}"
        met = " UNION ALL ".join(
            f"SELECT t.* FROM {of.sql} t WHERE {where}"
            for where in (f"s.operation = 'I' AND {of.at_new_key}", old)
        )
        there = f"t.{self.table.key_columns[0].sql} IS NOT NULL"
        present = {column.name: f"t.{column.sql}" for column in self.table.columns}
        whole = {column.name for column in self.table.columns} <= set(self.table.before)
        previous = {name: self.table.old("s", name) for name in present} if whole else {}
        kept = (
            f"CASE WHEN s.operation IN ('U', 'V', 'D') THEN {self._image(previous)} END" if whole else "NULL"
        )
        return (
            f"SELECT s.seq, {_WORDS}, CASE WHEN s.operation IN ('I', 'U', 'V') THEN {self._image(of.kept)} END,"
            f" CASE WHEN {there} THEN {self._image(present)} END, {kept} FROM {self.table.staged} s"
            f" LEFT JOIN LATERAL ({met} LIMIT 1) t ON true WHERE {{within}} ORDER BY s.seq"
        )

    def locks(self, within: str) -> Iterator[str]:
        """The rows that are met stay as they are shown."""
        of = Statements(self.table, "s")
        for kinds, where in (("'I'", of.at_new_key), ("'U', 'V', 'D'", of.at_old_key)):
            yield (
                f"SELECT FROM {of.sql} t, {self.table.staged} s WHERE {within} AND s.operation IN ({kinds})"
                f" AND {where} FOR UPDATE OF t"
            )

    def changed(self, words: Sequence[tuple[int, Word]]) -> str:
        """The staged operations become what the hook made of them; their keys stay."""
        told = literal(json.dumps([{"seq": seq, "row": word.row} for seq, word in words]))
        made = ", ".join(
            f"c{at} = (w.row ->> {literal(column.name)})::{self.table.staged_type(column)}"
            for at, column in enumerate(self.table.columns)
            if column.name not in self.table.key
        )
        as_update = "operation = CASE s.operation WHEN 'V' THEN 'U' ELSE s.operation END, kept = NULL"
        return (
            f"UPDATE {self.table.staged} s SET {', '.join(filter(None, (as_update, made)))}"
            f" FROM jsonb_to_recordset({told}) AS w(seq bigint, row jsonb) WHERE s.seq = w.seq"
        )

    def _image(self, values: Mapping[str, str]) -> str:
        types = {column.name: column.type for column in self.table.columns}
        names = ", ".join(map(literal, values))
        texts = ", ".join(types[name].exact(value) for name, value in values.items())
        return f"jsonb_object(ARRAY[{names}]::text[], ARRAY[{texts}]::text[])"
