"""The tables of a write: held as they are, and refused one by one where they were altered meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.postgresql.facts.connection import Connection
from concord.databases.postgresql.facts.plans import BY_KEY
from concord.databases.postgresql.facts.storage import Storage, read_storage
from concord.databases.postgresql.facts.table_errors import naming, of_named
from concord.databases.postgresql.rows.stage import Staged
from concord.messages.errors import StructureChanged


def hold(connection: Connection, staged: Sequence[Staged], site: str) -> None:
    """Nobody alters the tables from here on. Raises StructureChanged for one that was altered before (F87).

    A cast needs no lock of the table: one that is made from here on is seen by the next run alone.
    """
    with of_named({each.shape.name: bool(each.shape.private) for each in staged}, site):
        now = read_storage(
            connection,
            [each.shape.table for each in staged],
            *BY_KEY,
            *(f"ANALYZE {each.sql}" for each in staged),
            *(naming(each.shape.name, _held(each)) for each in staged),
        )
    for each in staged:
        _refuse_altered(each, now.get(each.shape.table.name), site)


def _held(staged: Staged) -> str:
    return f"LOCK TABLE ONLY {staged.shape.table.sql} IN ROW EXCLUSIVE MODE"


def _refuse_altered(staged: Staged, now: Storage | None, site: str) -> None:
    table, name = staged.shape.table, staged.shape.name
    if now is None or now.structure != table.structure:
        raise StructureChanged(
            f"{site}: {table.name}: the columns were altered while rows were on their way; nothing of it was written",
            table=name,
        )
    if made := sorted(now.casts - table.casts):
        raise StructureChanged(
            f"{site}: {table.name} has the cast {', '.join(made)}, made while rows were on their way; it would run with"
            " the rights of Concord's logins, so nothing of it was written; drop it",
            table=name,
        )
