"""Marks that the application keeps on the row itself: what they are at one site, and how they travel.

The mark travels as an instant in UTC, to the microsecond. Each site writes it in its own precision, cut and never
rounded up, and in its own time zone (F18, F19). So a site may hold less of a mark than its origin does. The version
of the row says that it is the same row all the same, and nothing is sent back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from concord.databases.contract.quoting import literal, qualified
from concord.databases.postgresql.facts import ownership
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.facts.types import ColumnType
from concord.tables.replication_set import Marks, ReplicatedTable, TableName

#: The memory of such a table's shadow beside the version: the mark, and the row by its hash, both as this site
#: renders them. NULL where there is no row.
MEMORY = ("concord_marked", "concord_seen")

#: Digits of a second that PostgreSQL keeps.
MOST_DIGITS = 6

#: A clock that is set back at the end of summer shows no more than this much twice.
LONGEST_FOLD = "3 hours"

#: Applications and columns cut a mark to whole seconds at most.
COARSEST_TICK = "1 second"


@dataclass(frozen=True, slots=True)
class MarkType(ColumnType):
    """The type of a mark column: an instant, whatever the site makes of it."""

    zone: str | None = None  #: of a column that carries none
    digits: int = MOST_DIGITS  #: of a second, that the column keeps
    told: int = MOST_DIGITS  #: of a second, that leave it: fewer where a coarser site is compared with

    @property
    def common(self) -> str:
        """Sites may differ in precision and time zone."""
        return "mark"

    @property
    def travels_in_binary(self) -> bool:
        """Nor is it a value of the same type at both, then."""
        return False

    def instant(self, expression: str) -> str:
        """The column as `timestamptz`."""
        return expression if self.zone is None else f"({expression} AT TIME ZONE {literal(self.zone)})"

    def local(self, expression: str) -> str:
        """The column as `timestamp`, as the site shows it, whatever time zone is configured."""
        return expression if self.zone is not None else f"({expression} AT TIME ZONE 'UTC')"

    def here(self, instant: str) -> str:
        """An instant as the column's clock shows it."""
        return instant if self.zone is None else f"({instant} AT TIME ZONE {literal(self.zone)})"

    def exact(self, expression: str) -> str:
        return f"{_cut(self.instant(expression), min(self.told, self.digits))}::text"

    def staged(self, expression: str) -> str:
        return expression

    def incoming(self, expression: str) -> str:
        return f"{self.here(_cut(f'{expression}::timestamptz', self.digits))}::{self.sql}"


def _cut(instant: str, digits: int) -> str:
    """Never rounded up: a copy must not be newer than its origin (F18)."""
    if digits == MOST_DIGITS:
        return f"({instant})"
    tick = 10 ** (MOST_DIGITS - digits)
    return f"date_bin('{tick} microseconds', {instant}, '0001-01-01 00:00:00+00'::timestamptz)"


@dataclass(frozen=True, slots=True)
class SiteMarks:
    """The marks of one table at one site."""

    changed_at: Column  #: its type is a `MarkType`
    deleted: Column
    tolerance: float  #: seconds
    view: TableName | None

    @property
    def type(self) -> MarkType:
        assert isinstance(self.changed_at.type, MarkType), "made by `marks_at`"
        return self.changed_at.type

    def telling(self, digits: int) -> SiteMarks:
        """The same, told in no more than so many digits: what a coarser site can hold of a mark (F18)."""
        return replace(self, changed_at=replace(self.changed_at, type=replace(self.type, told=digits)))

    def typed(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """The columns, the mark among them as what it is."""
        return tuple(self.changed_at if c.name == self.changed_at.name else c for c in columns)

    def flag(self, row: str) -> str:
        """Condition: the application has marked this base row as deleted."""
        return f"{row}.{self.deleted.sql}"

    def instant(self, row: str) -> str:
        return self.type.instant(f"{row}.{self.changed_at.sql}")

    def marked(self, row: str) -> str:
        """The mark as `concord_marked` remembers it."""
        return self.type.local(f"{row}.{self.changed_at.sql}")

    def since(self, start_us: int) -> str:
        """Condition on the base row `t` that an index on the mark answers: changed at or after an instant (µs).

        A clock without time zone shows an hour twice when summer ends. Its first reading in that hour may be later
        than its reading now, so the earlier reading counts.
        """
        instant = f"(to_timestamp({start_us} / 1000000.0) - interval '{COARSEST_TICK}')"
        if self.type.zone is None:
            return f"t.{self.changed_at.sql} >= {instant}"
        later = self.type.here(f"({instant} + interval '{LONGEST_FOLD}')")
        shown = f"least({self.type.here(instant)}, {later} - interval '{LONGEST_FOLD}')"
        return f"t.{self.changed_at.sql} >= {shown}"

    @property
    def remembered(self) -> dict[str, str]:
        """The site's note of this way of tracking: another one would read the shadow wrongly."""
        return {
            "changed_at": self.changed_at.name,
            "deleted": self.deleted.name,
            **({"view": qualified(self.view.schema_name, self.view.name)} if self.view else {}),
        }

    def provisioning(self, table: Table, shadow: str) -> list[str]:
        """The memory beside the versions, and the view for applications. No trigger."""
        memory = f"ALTER TABLE {shadow} ADD COLUMN IF NOT EXISTS concord_marked timestamp,"
        added = [f"{memory} ADD COLUMN IF NOT EXISTS concord_seen text"]
        return added if self.view is None else added + view_statements(self.view, table, self.deleted)


def marks_at(wanted: ReplicatedTable, site: str, table: Table) -> SiteMarks | None:
    """The marks of a table at one site; None where triggers keep the shadow, or where a column is missing."""
    marks = wanted.tracking
    if marks is None:
        return None
    names = own_names(wanted, marks, site)
    found = {column.name: column for column in table.columns}
    if not set(names) <= found.keys():
        return None
    changed_at, deleted = (found[name] for name in names)
    kept = {f.name: getattr(changed_at.type, f.name) for f in fields(ColumnType)}
    kind = MarkType(**kept, zone=zone_of(changed_at, marks, site), digits=_digits(changed_at.type.sql))
    return SiteMarks(replace(changed_at, type=kind), deleted, marks.tolerance, marks.view)


def own_names(wanted: ReplicatedTable, marks: Marks, site: str) -> tuple[str, ...]:
    """The site's names of the two columns."""
    return wanted.manipulation_at(site).own_names((marks.changed_at, marks.deleted))


def zone_of(changed_at: Column, marks: Marks, site: str) -> str | None:
    """The time zone of a column that has none; UTC until `provision` has asked for it."""
    return marks.time_zone.get(site, "UTC") if changed_at.type.root == "timestamp" else None


def _digits(sql: str) -> int:
    found = re.search(r"\((\d)\)", sql)
    return int(found[1]) if found else MOST_DIGITS


def view_statements(view: TableName, table: Table, deleted: Column) -> list[str]:
    """The rows that are not deleted, for whoever may read the table (S1-26)."""
    name, about = qualified(view.schema_name, view.name), view_comment(table.name)
    return [
        ownership.refused_view(name),
        f"CREATE OR REPLACE VIEW {name} WITH (security_invoker = true) AS"
        f" SELECT * FROM {table.sql} WHERE NOT {deleted.sql}",
        f"COMMENT ON VIEW {name} IS {literal(about)}",
        f"DO {literal(_grant_like(table.sql, name))}",
    ]


def _grant_like(table: str, view: str) -> str:
    """Whoever may read the table may read the view."""
    return f"""
DECLARE reader text;
BEGIN
  FOR reader IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
                  FROM pg_class c, aclexplode(c.relacl) a
                 WHERE c.oid = {literal(table)}::regclass AND a.privilege_type = 'SELECT'
  LOOP
    EXECUTE {literal(f"GRANT SELECT ON {view} TO ")} || reader;
  END LOOP;
END"""


def view_comment(table: TableName) -> str:
    """By this comment a view is known to be Concord's own."""
    return f"Concord: the rows of {table} that are not deleted"
