"""Which rows will the target not take? Found by writing them in a savepoint that is rolled back, and halving.

Nothing is rehearsed unless a write was refused, or rows that were refused before are tried again: a run without
such rows pays nothing. The rows found stay out by their verdict, and the ordinary write goes on with the others, in
the same transaction. All of a run is still visible at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import psycopg

from concord.databases.postgresql.constraints import orphans
from concord.databases.postgresql.facts.connection import Connection, one, rows, run
from concord.databases.postgresql.facts.refusal import is_refusal, told
from concord.databases.postgresql.facts.table_errors import of_table
from concord.databases.postgresql.rows.repetition import COLLISIONS
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write import merge
from concord.databases.postgresql.write.judged import Judged
from concord.databases.postgresql.write.writing import Care
from concord.messages.errors import ConstraintViolated
from concord.tables.replication_set import TableName

#: Refused rows that the error names when there are too many.
SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class Suspects:
    """The winners of one table that may be refused, numbered in a temporary table: retried ones come last."""

    judged: Judged
    relation: str
    fresh: int
    retried: int

    @property
    def shape(self) -> Shape:
        return self.judged.staged.shape

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """First and last number of the fresh and of the retried rows: a whole each, to begin with."""
        parts = [(1, self.fresh), (self.fresh + 1, self.fresh + self.retried)]
        return [(first, last) for first, last in parts if first <= last]

    def among(self, chosen: str) -> Judged:
        """The suspects `q` that are chosen and have not been refused."""
        mine = (
            f"EXISTS (SELECT 1 FROM {self.relation} q WHERE {self.shape.same_key('q', 's')}"
            f" AND {chosen} AND q.concord_refused IS NULL)"
        )
        return replace(self.judged, staged=self.judged.staged.only(mine, 0))

    @property
    def accepted(self) -> Judged:
        """All of the table that is written but the suspects that have been refused."""
        theirs = (
            f"NOT EXISTS (SELECT 1 FROM {self.relation} q WHERE {self.shape.same_key('q', 's')}"
            " AND q.concord_refused IS NOT NULL)"
        )
        return replace(self.judged, staged=self.judged.staged.only(theirs, 0))

    def mark(self, connection: Connection, refused: Mapping[int, str]) -> None:
        """The next rehearsal does without these."""
        with connection.cursor() as cursor:
            cursor.executemany(
                f"UPDATE {self.relation} SET concord_refused = %s WHERE concord_n = %s".encode(),
                [(reason, number) for number, reason in refused.items()],
            )


def suspects(connection: Connection, judged: Judged, ordinal: int, *, every: bool) -> Suspects:
    """Number the rows of a table that would be written: every one, or those that are tried again."""
    shape, name = judged.staged.shape, f"suspect_{ordinal}"
    keys = ", ".join(column.sql for column in shape.key)
    chosen = "true" if every else "s.concord_retried"
    before = "".join(f", t.{shape.table.column(each).sql}" for each in orphans.referred(shape))
    present = f" LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 's')}" if before else ""
    run(
        connection,
        f"""
CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS
SELECT row_number() OVER (ORDER BY s.concord_retried, {shape.keys_of("s")}) AS concord_n, {shape.keys_of("s")},
       s.concord_gone, s.concord_retried, NULL::text AS concord_refused{before}
  FROM {judged.winners} s{present} WHERE {chosen}""",
        f"CREATE INDEX ON pg_temp.{name} ({keys})",
        f"CREATE INDEX ON pg_temp.{name} (concord_n)",
        f"ANALYZE pg_temp.{name}",
    )
    counted = f"SELECT count(*) FILTER (WHERE NOT concord_retried), count(*) FROM pg_temp.{name}"
    fresh, total = one(connection, counted)
    return Suspects(judged, f"pg_temp.{name}", fresh, total - fresh)


@dataclass
class Rehearsal:
    """Finds what the target will not take of the judged tables, parents first."""

    connection: Connection
    tables: Sequence[Suspects]
    most: int  #: fresh rows that may be refused
    site: str
    mend: Callable[[], None]  #: lets rows give way for unique values, as the write itself will
    care: Care
    changeable: Collection[TableName]  #: whose rows follow the rows that they refer to
    refused: Counter[str] = field(default_factory=Counter)  #: fresh rows, by reason
    found: dict[Suspects, dict[int, str]] = field(default_factory=dict)  #: in this try: number → reason
    unmended: psycopg.Error | None = None  #: in this try: why no row gave way

    def run(self) -> None:
        """Until all that is left would be written. Raises ConstraintViolated when too many would not."""
        while True:
            self.found = {each: {} for each in self.tables}
            with self.connection.transaction():
                self._try_everything()
                raise psycopg.Rollback
            if not any(self.found.values()):
                return
            for each in [table for table, refused in self.found.items() if refused]:
                each.mark(self.connection, self.found[each])
                quarantine(self.connection, each)

    def _try_everything(self) -> None:
        self._let_give_way()
        for each in self.tables:
            for first, last in each.ranges:
                unique: list[int] = []
                self._halve(each, first, last, unique)
                self._try_together(each, unique)
        if self.unmended and not any(self.found.values()):
            raise self.unmended
        if not any(self.found.values()):
            for each in self.tables:
                self._refuse_orphans(each)

    def _refuse_orphans(self, each: Suspects) -> None:
        """Of fresh rows the write mends the references, unless it has been in vain."""
        follow = self.changeable if self.care is Care.NONE else ()
        for number, reason in orphans.found(self.connection, each.shape, each.relation, follow):
            if self.care is not Care.ROWS or number > each.fresh:
                self._refuse(each, number, reason)

    def _let_give_way(self) -> None:
        """Unless a row is no value of its columns: what is unique is left to the next try, which does without it."""
        self.unmended = None
        try:
            with self.connection.transaction():
                self.mend()
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            self.unmended = error

    def _halve(self, each: Suspects, first: int, last: int, unique: list[int]) -> None:
        """Halve the range until the refused rows stand alone; the others stay written for the time being."""
        error = self._tried(each, f"q.concord_n BETWEEN {first} AND {last}")
        if error is None:
            return
        if first == last:
            is_unique = isinstance(error, COLLISIONS)
            if is_unique and self.unmended:
                return
            self._refuse(each, first, told(error, private=bool(each.shape.private)))
            if is_unique:
                unique.append(first)
            return
        middle = (first + last) // 2
        self._halve(each, first, middle, unique)
        self._halve(each, middle + 1, last, unique)

    def _try_together(self, each: Suspects, unique: Sequence[int]) -> None:
        """Values that move between rows (F38) were in each other's way when these stood in different halves."""
        if len(unique) < 2:
            return
        listed = ", ".join(map(str, unique))
        if self._tried(each, f"q.concord_n IN ({listed})") is None:
            for number in unique:
                self._take_back(each, number)

    def _tried(self, each: Suspects, chosen: str) -> psycopg.Error | None:
        """Write the base rows alone: the shadow refuses nothing. An error of the database's own state is raised."""
        shape = each.shape
        try:
            with of_table(shape.name, self.site, private=bool(shape.private)), self.connection.transaction():
                merge.write_base(self.connection, each.among(chosen), values_move=True)
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            return error
        return None

    def _refuse(self, each: Suspects, number: int, reason: str) -> None:
        self.found[each][number] = reason
        self.refused[reason] += number <= each.fresh
        if self.refused.total() > self.most:
            shown = "; ".join(list(self.refused)[:SHOWN])
            raise ConstraintViolated(
                f"{self.site}: more rows are refused than max_quarantined ({self.most}): {shown}. Mend the rows or the"
                " constraint, at either site; nothing was written"
            )

    def _take_back(self, each: Suspects, number: int) -> None:
        reason = self.found[each].pop(number)
        self.refused[reason] -= number <= each.fresh


def quarantine(connection: Connection, each: Suspects) -> None:
    """Give the refused rows their verdict, so that the write leaves them out. Raises ConstraintViolated for a row
    that a backfill puts back: its version is there already, and would be taken for the row."""
    shape, verdicts = each.shape, each.judged.verdicts
    refused = f"{each.relation} q"
    same = shape.same_key("q", "v")
    restored = rows(
        connection,
        f"SELECT q.concord_refused FROM {refused} JOIN {verdicts} v ON {same}"
        " WHERE q.concord_refused IS NOT NULL AND v.verdict = 'restore' LIMIT 1",
    )
    if restored:
        raise ConstraintViolated(f"{each.judged.target}: {restored[0][0]}; nothing was written")
    run(
        connection,
        f"UPDATE {verdicts} v SET verdict = 'quarantined', resolver = NULL, reason = q.concord_refused"
        f" FROM {refused} WHERE {same} AND q.concord_refused IS NOT NULL",
        f"INSERT INTO {verdicts} ({shape.key_list}, verdict, reason)"
        f" SELECT {shape.keys_of('q')}, 'quarantined', q.concord_refused FROM {refused}"
        f" WHERE q.concord_refused IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {verdicts} v WHERE {same})",
    )
