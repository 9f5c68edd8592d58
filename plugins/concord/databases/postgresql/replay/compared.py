"""The operations on a table to which both sites write (S2-06, S2-24).

Each finds its row as it was at the publisher, or the row is as the operation would make it already. Else users of both
sites have changed the same row: the entry ends there, and nothing of it stands (S2-21).
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.replay import decided
from concord.databases.postgresql.replay.statements import of_staged_row, taken

#: SQLSTATE of our own.
CONFLICT = "CNC04"
#: A new key, or a value of another unique rule, that a user here has given to another row (`unique_violation`).
CONFLICTS = (CONFLICT, "23505")


class Compared:
    """The statements of one table."""

    def __init__(self, table: ReplicatedTable) -> None:
        self.table, self.of, self.sql = table, of_staged_row(table), table.table.sql

    @property
    def operations(self) -> str:
        """Of a truncate nobody can say which rows its user had seen."""
        of = self.of
        passed_over = f"WHEN 'S' THEN {of.count('decided')}" if self.table.has_decided else ""
        return f"""
        {taken(self.table)}
        {decided.judged(self.table, of.row)}
        CASE r.operation {passed_over}
        WHEN 'U' THEN
          {of.update(self.same_row, of.values)};
          IF FOUND THEN {self.of.count("updated")} ELSE {self.else_anew} END IF;
        WHEN 'I' THEN
          {self.of.insert_row} ON CONFLICT ({of.key}) DO NOTHING;
          IF FOUND THEN {self.of.count("inserted")} ELSE {self.else_alike} END IF;
        WHEN 'D' THEN
          DELETE FROM {self.sql} t WHERE {self.of.as_before};
          IF FOUND THEN {self.of.count("deleted")} ELSE {self.else_gone} END IF;
        ELSE {self.conflict("a truncate; delete the rows instead")}
        END CASE;"""

    @property
    def same_row(self) -> str:
        """The row as it was at the publisher before the operation, if an update can make the new one of it."""
        return " AND ".join([self.of.as_before, *self.of.same_generated])

    @property
    def else_anew(self) -> str:
        """The row's generated value changed, or it is not as it was."""
        if not self.of.same_generated:
            return self.else_alike
        return (
            f"DELETE FROM {self.sql} t WHERE {self.of.as_before};"
            f" IF FOUND THEN {self.of.insert_row}; {self.of.count('updated')} ELSE {self.else_alike} END IF;"
        )

    @property
    def else_alike(self) -> str:
        """Of the keys before and after, one row is there, and as the operation would make it."""
        is_made = f"{self.of.at_new_key} AND {self.of.alike(self.of.values)}"
        one = f"r.operation = 'U' AND {self.of.at_old_key} OR {self.of.at_new_key}"
        return (
            f"PERFORM FROM {self.sql} t WHERE {one} HAVING count(*) = 1 AND bool_and({is_made});"
            f" IF NOT FOUND THEN {self.conflict('a row changed here as well')} END IF; {self.of.count('alike')}"
        )

    @property
    def else_gone(self) -> str:
        return (
            f"PERFORM FROM {self.sql} t WHERE {self.of.at_old_key};"
            f" IF FOUND THEN {self.conflict('a row changed here as well')} END IF; {self.of.count('alike')}"
        )

    def conflict(self, what: str) -> str:
        """No value is told: some may be private."""
        said = literal(f"{self.table.table.name}: it meets {what}".replace("%", "%%"))
        return f"RAISE EXCEPTION {said} USING ERRCODE = '{CONFLICT}';"
