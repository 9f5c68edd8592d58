"""The operations on a table of which a history is kept: each appends a version, and none changes one (S0-49).

A row's newest version has the publisher's values, or the operation D: then the row is gone. A delete repeats the values
that the row had. A changed key is a delete of the old one and an insert of the new one.
"""

from __future__ import annotations

from collections.abc import Mapping

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.replay.statements import FOUND, NOT_FOUND, of_staged_row, refused, taken
from concord.jobs.replication import Conversions

#: Variables of the procedure: the staged entry, and whether the operation's row is there. A record's field stays what
#: it is where a table's column has the name of the record.
VARIABLES = "concord_made record; concord_lives boolean;"


def entered(entry: str) -> str:
    """The statement that fills them, from the staged entry."""
    return f"concord_made := {entry};"


def appending(
    table: ReplicatedTable, values: Mapping[str, str], version: str, made: tuple[str, str, str]
) -> str:
    """`INSERT INTO … SELECT` without its FROM. `made`: operation, time of the commit, the entry's number."""
    assert table.history is not None
    columns = (*(each.sql for each in table.columns), *map(quote, table.history.own))
    return (
        f"INSERT INTO {table.table.sql} ({', '.join(columns)}) OVERRIDING SYSTEM VALUE"
        f" SELECT {', '.join((*values.values(), version, *made))}"
    )


def newest(table: ReplicatedTable) -> str:
    """A query: the newest version of each key."""
    assert table.history is not None
    key, version = ", ".join(f"h.{each.sql}" for each in table.key_columns), quote(table.history.version)
    return f"SELECT DISTINCT ON ({key}) h.* FROM {table.table.sql} h ORDER BY {key}, h.{version} DESC"


class Appended:
    """The statements of one table. `t` is the newest version of a key."""

    def __init__(self, table: ReplicatedTable, conversions: Conversions) -> None:
        assert table.history is not None
        self.table, self.refuses = table, conversions is Conversions.REFUSE
        self.of, self.version = of_staged_row(table), quote(table.history.version)
        self.present = {column.name: f"t.{column.sql}" for column in table.columns}

    @property
    def operations(self) -> str:
        """Updates come first: most operations are such."""
        count, old, new = self.of.count, self.of.at_old_key, self.of.at_new_key
        return f"""
        {taken(self.table)}{refused(self.table)}
        CASE r.operation
        WHEN 'U' THEN
          {self._looked_for(old)}
          IF concord_lives THEN {count("updated")}
          ELSE {self._convert("an update that does not find its row")} {count("inserted_for_update")} END IF;
          IF {self._same_key} THEN {self._append("U", new, self.of.values)};
          ELSE {self._append_gone(old)}; {self._append("I", new, self.of.values)}; END IF;
        WHEN 'I' THEN
          {self._looked_for(new)}
          {self._append("I", new, self.of.values)};
          IF concord_lives THEN {self._convert("an insert that finds its row", FOUND)} {count("updated_for_insert")}
          ELSE {count("inserted")} END IF;
        WHEN 'D' THEN
          {self._append_gone(old)};
          IF FOUND THEN {count("deleted")} ELSE {self._convert("a delete that does not find its row")}
            {count("missing")} END IF;
        WHEN 'V' THEN
          {self._looked_for(old)}
          IF NOT concord_lives THEN
            {self._refuse("an update that does not find its row, of which not all was sent")} END IF;
          {count("updated")}
          IF {self._same_key} THEN {self._append_kept("U", old)};
          ELSE {self._append_kept_at_new_key()}; END IF;
        ELSE -- truncated
          {appending(self.table, self.present, f"t.{self.version} + 1", self._made("D"))}
            FROM ({newest(self.table)}) t WHERE t.operation <> 'D';
          GET DIAGNOSTICS n = ROW_COUNT;
          deleted_{self.table.place} := deleted_{self.table.place} + n;
        END CASE;"""

    def _last(self, key: str) -> str:
        """The newest version of a key, as a row `t`."""
        return (
            f"(SELECT t.* FROM {self.table.table.sql} t WHERE {key} ORDER BY t.{self.version} DESC LIMIT 1) t"
        )

    def _looked_for(self, key: str) -> str:
        return f"concord_lives := EXISTS (SELECT FROM {self._last(key)} WHERE t.operation <> 'D');"

    @property
    def _same_key(self) -> str:
        pairs = ((self.table.old(self.of.row, c.name), self.of.values[c.name]) for c in self.of.keys)
        return " AND ".join(f"{one} = {other}" for one, other in pairs)

    def _made(self, operation: str) -> tuple[str, str, str]:
        return (literal(operation), "concord_made.at", "concord_made.number")

    def _append(self, operation: str, key: str, values: Mapping[str, str]) -> str:
        """The staged row. Its key may never have been there."""
        version = f"coalesce((SELECT t.{self.version} FROM {self._last(key)}), 0) + 1"
        return appending(self.table, values, version, self._made(operation))

    def _append_kept(self, operation: str, key: str) -> str:
        """The staged row; values that were not sent are those of the version before."""
        made = appending(self.table, self.of.kept, f"t.{self.version} + 1", self._made(operation))
        return f"{made} FROM {self._last(key)}"

    def _append_kept_at_new_key(self) -> str:
        """Values that were not sent stand under the old key, whose delete repeats them."""
        there = " AND ".join(f"v.{each.sql} = {self.of.values[each.name]}" for each in self.of.keys)
        most = f"SELECT max(v.{self.version}) FROM {self.table.table.sql} v WHERE {there}"
        made = appending(self.table, self.of.kept, f"coalesce(({most}), 0) + 1", self._made("I"))
        return f"{self._append_gone(self.of.at_old_key)}; {made} FROM {self._last(self.of.at_old_key)}"

    def _append_gone(self, key: str) -> str:
        """None where the row is not there."""
        made = appending(self.table, self.present, f"t.{self.version} + 1", self._made("D"))
        return f"{made} FROM {self._last(key)} WHERE t.operation <> 'D'"

    def _convert(self, what: str, number: str = NOT_FOUND) -> str:
        return self._refuse(what, number) if self.refuses else "converted := converted + 1;"

    def _refuse(self, what: str, number: str = NOT_FOUND) -> str:
        """No value is told: some may be private."""
        said = literal(f"{self.table.table.name}: {what}".replace("%", "%%"))
        return f"RAISE EXCEPTION {said} USING ERRCODE = '{number}';"
