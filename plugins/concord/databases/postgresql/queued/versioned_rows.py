"""The rows of one queued table with their versions, and the statements about both. `t` is a row, `s` its version."""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.replay.statements import Statements

#: SQLSTATE of `serialization_failure`: the entry is replayed once more, as a whole.
AGAIN = "40001"
_FIELDS = {
    "origin": "text",
    "changed_at": "bigint",
    "derived": "integer",
    "vector": "jsonb",
    "deleted": "boolean",
    "born": "boolean",
}


class VersionedRows:
    """One table at the site that replays."""

    def __init__(self, table: ReplicatedTable, versions: ReplicatedTable) -> None:
        self.table, self.versions = table, versions
        self.of, self.sql = Statements(table, f"(r.t{table.place})"), table.table.sql
        self.shadow, self._row = versions.table.sql, f"(r.t{versions.place})"
        self._after = {column.name: versions.new(self._row, column.name) for column in versions.columns}
        self._before = {name: versions.old(self._row, name) for name in versions.before}

    @property
    def key(self) -> list[str]:
        """The row's key, as its staged version has it."""
        return [self._after[name] for name in self.versions.key]

    @property
    def forgotten_key(self) -> list[str]:
        return [self._before[name] for name in self.versions.key]

    @property
    def before(self) -> str:
        """The version before the change, as a dot; NULLs where the row had none."""
        return f"({', '.join(self._before[name] for name in ('origin', 'changed_at', 'derived'))})"

    @property
    def was_deleted(self) -> str:
        return self._before["deleted"]

    @property
    def was_there(self) -> str:
        """Did the operation find its row at its own site? A row that is as it was copied has no version yet."""
        before, born = self._before["origin"], self._after["born"]
        return f"CASE WHEN {before} IS NULL THEN NOT {born} ELSE NOT {self.was_deleted} END"

    @property
    def after(self) -> str:
        """The version after it, as the conflict log has versions."""
        return self._object({name: self._after[name] for name in _FIELDS})

    def present(self, row: str = "s") -> str:
        """The same of a row of the shadow table; NULL where there is none."""
        made = self._object({name: f"{row}.{name}" for name in _FIELDS})
        return f"CASE WHEN {row}.origin IS NOT NULL THEN {made} END"

    def _object(self, fields: dict[str, str]) -> str:
        return (
            f"jsonb_build_object({', '.join(f'{literal(name)}, {value}' for name, value in fields.items())})"
        )

    def dot_of(self, version: str) -> str:
        """The dot of a version as an object."""
        return f"({version} ->> 'origin', ({version} ->> 'changed_at')::bigint, ({version} ->> 'derived')::integer)"

    def image(self, values: dict[str, str]) -> str:
        """A row as the conflict log has rows: an object of exact texts."""
        names = ", ".join(map(literal, values))
        texts = ", ".join(self.table.table.column(name).type.exact(value) for name, value in values.items())
        return f"jsonb_object(ARRAY[{names}]::text[], ARRAY[{texts}]::text[])"

    def row_image(self, row: str = "t") -> str:
        return self.image({column.name: f"{row}.{column.sql}" for column in self.table.columns})

    def at(self, key: Sequence[str], row: str = "t") -> str:
        """The condition that a row has this key."""
        pairs = zip(self.of.keys, key, strict=True)
        return " AND ".join(f"{row}.{column.sql} = {value}" for column, value in pairs)

    def version_at(self, key: Sequence[str], row: str = "s") -> str:
        pairs = zip(self.versions.key_columns, key, strict=True)
        return " AND ".join(f"{row}.{column.sql} = {value}" for column, value in pairs)

    def upsert(self, where: str = "") -> str:
        """Write the staged version. A condition that does not hold begins the entry again (`AGAIN`)."""
        return self._upsert(self.key, {name: self._after[name] for name in _FIELDS}, where)

    def upsert_version(self, key: Sequence[str], version: str, where: str = "") -> str:
        """The same with one that is an object."""
        fields = {name: f"({version} ->> {literal(name)})::{kind}" for name, kind in _FIELDS.items()}
        return self._upsert(key, fields, where)

    def _upsert(self, key: Sequence[str], fields: dict[str, str], where: str) -> str:
        names = [*(column.sql for column in self.versions.key_columns), *fields]
        changed = ", ".join(f"{name} = excluded.{name}" for name in (*fields, "position"))
        guard = f" WHERE (s.origin, s.changed_at, s.derived) IS NOT DISTINCT FROM {where}" if where else ""
        again = (
            f";\n          IF NOT FOUND THEN RAISE EXCEPTION 'a user was faster' USING ERRCODE = '{AGAIN}'; END IF"
            if where
            else ""
        )
        return (
            f"INSERT INTO {self.shadow} AS s ({', '.join(names)}, position)"
            f" VALUES ({', '.join([*key, *fields.values()])}, pg_current_xact_id())"
            f" ON CONFLICT ({', '.join(column.sql for column in self.versions.key_columns)}) DO UPDATE SET {changed},"
            f" agreed = false, received_from = NULL, out_of_scope = NULL{guard}{again}"
        )
