"""Children whose parent is not there after a write: only among what was written, and what referred to what went
(rule 13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.constraints import former
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.facts.table_errors import of_table
from concord.databases.postgresql.facts.types import written
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write.judged import Judged
from concord.jobs.link import LinkJob
from concord.messages.errors import ConstraintViolated
from concord.tables.privacy import at_site
from concord.tables.replication_set import TableName

#: Offending rows named in the error.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Orphan:
    """One row that refers to nothing."""

    foreign_key: ForeignKey
    row: str  #: its key, a JSON array of exact texts; empty where its table is not replicated
    values: str  #: what it refers by, likewise
    lost: bool  #: the parent gave way to another row for a unique value, and cannot come back
    known: bool  #: the parent was here before this write
    moved: str | None = None  #: the parent's own key, likewise: it is here, and has other values now

    @property
    def identity(self) -> tuple[object, ...]:
        return (self.foreign_key.child, self.foreign_key.name, self.row, self.values)


def sql_name(name: TableName) -> str:
    """A table of the catalogue's in a statement."""
    return qualified(name.schema_name, name.name)


def key_text(shape: Shape, row: str) -> str:
    """A row's own key as an orphan tells it."""
    texts = ", ".join(column.type.exact(f"{row}.{column.sql}") for column in shape.key)
    return f"to_jsonb(ARRAY[{texts}]::text[])::text"


def writing(
    foreign_key: ForeignKey, judged: Mapping[TableName, Judged], site: str
) -> AbstractContextManager[None]:
    """While it is looked at: its errors are those of the table that is written, the child or the parent alone."""
    table = judged.get(foreign_key.child) or judged.get(foreign_key.parent)
    if table is None:
        return nullcontext()
    shape = table.staged.shape
    return of_table(shape.name, site, private=bool(shape.private))


def key_of(shape: Shape, texts: str) -> str:
    """The inverse, as a select list under the key's own names."""
    parts = enumerate(shape.key)
    return ", ".join(f"({texts}::jsonb ->> {place})::{c.type.sql} AS {c.sql}" for place, c in parts)


def listed_keys(shape: Shape, keys: Sequence[str]) -> str:
    """Such keys as a relation `k`, under the key's own names."""
    texts = ", ".join(literal(key) for key in keys)
    return f"(SELECT {key_of(shape, 'u.k')} FROM unnest(ARRAY[{texts}]::text[]) u (k)) k"


def listed_rows(shape: Shape, keys: Sequence[str]) -> str:
    """The rows `c` with such keys, to follow FROM."""
    return f"{listed_keys(shape, keys)} JOIN {shape.table.sql} c ON {shape.same_key('c', 'k')}"


def lock_parents(connection: Connection, foreign_key: ForeignKey, children: str) -> None:
    """As the database would: what is there stays there until we commit."""
    referred = ", ".join(f"c.{quote(name)}" for name in foreign_key.columns)
    run(
        connection,
        f"SELECT count(*) FROM (SELECT 1 FROM (SELECT DISTINCT {referred} FROM {children}) w"
        f" JOIN {sql_name(foreign_key.parent)} p ON {foreign_key.refers('p', 'w')} FOR KEY SHARE OF p) x",
    )


def find(
    connection: Connection,
    foreign_key: ForeignKey,
    children: str,
    *,
    child: Shape | None,
    parent: Shape | None,
) -> list[Orphan]:
    """Those of `children` (what follows FROM, where they are called `c`) that refer to nothing.

    `child` is the shape of their table where it is replicated; `parent` that of a table with former rows.
    """
    given = " AND ".join(f"c.{quote(name)} IS NOT NULL" for name in foreign_key.columns)
    values = ", ".join(f"{_exact(child, name)}" for name in foreign_key.columns)
    there = foreign_key.refers("p", "c")
    key = key_text(child, "c") if child else "''::text"
    lost, known, moved = "false", "false", "NULL::text"
    if parent is not None:
        before = f"EXISTS (SELECT 1 FROM {former.relation(parent)} f WHERE {foreign_key.refers('f', 'c')} AND"
        lost, known = f"{before} f.concord_lost)", f"{before} NOT f.concord_lost)"
        moved = (
            f"(SELECT min({key_text(parent, 't')}) FROM {former.relation(parent)} f JOIN {parent.table.sql} t"
            f" ON {parent.same_key('t', 'f')} WHERE {foreign_key.refers('f', 'c')} AND NOT f.concord_lost"
            f" AND {has_values(foreign_key, 't')})"
        )
    found = rows(
        connection,
        f"SELECT DISTINCT {key}, to_jsonb(ARRAY[{values}]::text[])::text,"
        f" {lost}, {known}, {moved} FROM {children} WHERE {given}"
        f" AND NOT EXISTS (SELECT 1 FROM {sql_name(foreign_key.parent)} p WHERE {there}) ORDER BY 1, 2",
    )
    return [Orphan(foreign_key, *each) for each in found]


def has_values(foreign_key: ForeignKey, parent: str) -> str:
    """Condition: a row can be referred to."""
    return " AND ".join(f"{parent}.{quote(name)} IS NOT NULL" for name in foreign_key.referenced)


def _exact(child: Shape | None, name: str) -> str:
    value = f"c.{quote(name)}"
    return child.table.column(name).type.exact(value) if child else written(value)


def still_refers(child: Shape, foreign_key: ForeignKey, row: str, values: str) -> str:
    """Condition: the child refers by these values, as an orphan tells them."""
    columns = map(child.table.column, foreign_key.columns)
    texts = ", ".join(column.type.exact(f"{row}.{column.sql}") for column in columns)
    return f"to_jsonb(ARRAY[{texts}]::text[])::text = {values}"


def that_referred(foreign_key: ForeignKey, parent: Shape) -> str:
    """The children of former rows, to follow FROM."""
    referred = ", ".join(f"f.{quote(name)}" for name in foreign_key.referenced)
    return (
        f"(SELECT DISTINCT {referred} FROM {former.relation(parent)} f) f JOIN {sql_name(foreign_key.child)} c"
        f" ON {foreign_key.refers('f', 'c')}"
    )


def _at_site_of(shape: Shape, foreign_key: ForeignKey) -> ForeignKey:
    """The foreign key with the operators of the parent's site: an extension may be in another schema there."""
    alike = (key for key in shape.table.referring if key.referenced == foreign_key.referenced)
    return next(alike, foreign_key)


def refers_to(shape: Shape, foreign_key: ForeignKey, row: str, texts: str) -> str:
    """Condition: `row` is the parent, at the site of `shape`, that an orphan's values name."""
    columns = [shape.table.column(name) for name in foreign_key.referenced]
    compared_at = _at_site_of(shape, foreign_key).among_parents
    return " AND ".join(
        compared.sql(f"{row}.{column.sql}", f"({texts}::jsonb ->> {place})::{column.type.sql}")
        for place, (compared, column) in enumerate(zip(compared_at, columns, strict=True))
    )


def shown(job: LinkJob, foreign_key: ForeignKey, values: Iterable[str]) -> str:
    """Some of what rows refer by, to follow a message's words; nothing where that is private at either end."""
    site = job.target.name
    ends = ((foreign_key.child, foreign_key.columns), (foreign_key.parent, foreign_key.referenced))
    for table in job.tables:
        private = at_site(table.private, table.manipulation_at(site)).keys()
        if any(name == table.at_site(site) and private & set(columns) for name, columns in ends):
            return ""
    listed = sorted({each.strip("[]").replace('"', "") for each in values})
    return f" ({'; '.join(listed[:SHOWN])})"


def refusal(found: Sequence[Orphan], job: LinkJob, *, waits: bool = False) -> ConstraintViolated:
    """The rows of one foreign key that no link may mend, in words; `waits`: the parents wait themselves."""
    foreign_key = found[0].foreign_key
    which = shown(job, foreign_key, [each.values for each in found if each.foreign_key == foreign_key])
    why = (
        f"wait{which}. Let them in, or decide about them (`waiting list`)"
        if waits
        else f"are not there after this link{which}: one site deleted or changed the parent while another added"
        " the child. Delete the child or bring the parent back, at either site"
    )
    return ConstraintViolated(
        f"{job.target.name}: {foreign_key.child} refers by {foreign_key.name} to rows of {foreign_key.parent} that"
        f" {why}; nothing was written"
    )
