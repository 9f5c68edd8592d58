"""The statements that write one replicated table, whether row by row or by set."""

from __future__ import annotations

from concord.databases.contract.quoting import quote
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.facts.catalogue import Column

#: SQLSTATEs of our own: of all that a replay refuses, of an update or a delete without its row, of an insert that finds
#: one, and of an update or a delete of a row that was altered.
REFUSED, NOT_FOUND, FOUND, ALTERED = "CNC02", "CNC06", "CNC07", "CNC09"


class Statements:
    """`t` is the subscriber's row, `row` the staged one."""

    def __init__(self, table: ReplicatedTable, row: str) -> None:
        self.table, self.row, self.sql = table, row, table.table.sql
        self.values = {column.name: table.after(row, at) for at, column in enumerate(table.columns)}
        self.keys = table.key_columns

    @property
    def insert(self) -> str:
        """Without its values."""
        names = ", ".join(column.sql for column in self.table.columns)
        return f"INSERT INTO {self.sql} ({names}) OVERRIDING SYSTEM VALUE"

    @property
    def insert_row(self) -> str:
        """With those of the one staged row."""
        return f"{self.insert} VALUES ({', '.join(self.values.values())})"

    def count(self, effect: str) -> str:
        """One more operation of that effect."""
        counter = f"{effect}_{self.table.place}"
        return f"{counter} := {counter} + 1;"

    def update(self, where: str, values: dict[str, str], source: str = "") -> str:
        return f"UPDATE {self.sql} t SET {self.changed(values)}{f' FROM {source}' if source else ''} WHERE {where}"

    def changed(self, values: dict[str, str]) -> str:
        """A column GENERATED ALWAYS AS IDENTITY takes no value by an update."""
        settable = [column for column in self.table.columns if not generates(column)]
        return ", ".join(f"{column.sql} = {values[column.name]}" for column in settable)

    @property
    def key(self) -> str:
        return ", ".join(column.sql for column in self.keys)

    @property
    def at_old_key(self) -> str:
        """The subscriber's row has the key that the publisher's had before the operation."""
        return " AND ".join(f"t.{each.sql} = {self.table.old(self.row, each.name)}" for each in self.keys)

    @property
    def as_before(self) -> str:
        """The subscriber's row is, value by value, as the publisher's was before the operation."""
        before = {name: self.table.old(self.row, name) for name in self.table.before}
        return f"{self.at_old_key} AND {self.alike(before)}"

    def alike(self, values: dict[str, str]) -> str:
        """The subscriber's row has these values. Compared by image: 1.0 and 1.00 are two values, and a type need not
        know what is equal."""
        ours = ", ".join(f"t.{self.table.table.column(name).sql}" for name in values)
        return f"record_image_eq(ROW({ours}), ROW({', '.join(values.values())}))"

    @property
    def same_generated(self) -> list[str]:
        """The subscriber's row has the generated values of the operation, which no update can change. Empty where the
        table generates none."""
        generated = [column for column in self.table.columns if generates(column)]
        return [f"t.{column.sql} = {self.values[column.name]}" for column in generated]

    @property
    def last_version(self) -> str:
        """Of the rows of one key in a history."""
        history = self.table.history
        return "" if history is None else f" ORDER BY t.{quote(history.version)} DESC LIMIT 1"

    @property
    def at_new_key(self) -> str:
        return " AND ".join(f"t.{column.sql} = {self.values[column.name]}" for column in self.keys)

    @property
    def kept(self) -> dict[str, str]:
        """The values, where one was not sent since it is unchanged: the row keeps its own."""
        kept = f"{self.row}.kept"
        return {
            column.name: f"CASE WHEN get_bit({kept}, {at}) = 1 THEN t.{column.sql} ELSE {self.values[column.name]} END"
            for at, column in enumerate(self.table.columns)
        }


def of_staged_row(table: ReplicatedTable) -> Statements:
    """In a procedure's loop, whose variables hold the staged row. `(r.tN).cM` would count off its columns each time."""
    return Statements(table, _variable(table))


def declared(table: ReplicatedTable) -> str:
    """The variable of its staged row."""
    return f"{_variable(table)} {table.staged};"


def taken(table: ReplicatedTable) -> str:
    """The loop's row goes into it."""
    return f"{_variable(table)} := r.t{table.place};"


def refused(table: ReplicatedTable) -> str:
    """A row that does not fit the mapping ends its entry; the reason names the row as far as people may see it."""
    if table.mapping is None:
        return ""
    reason = f"{_variable(table)}.refused"
    return f"""
        IF {reason} IS NOT NULL THEN RAISE EXCEPTION '%', {reason} USING ERRCODE = '{REFUSED}'; END IF;"""


def _variable(table: ReplicatedTable) -> str:
    return f"concord_{table.place}"


def generates(column: Column) -> bool:
    """Its values are PostgreSQL's own, unless an insert overrides that."""
    return column.identity == "a"
