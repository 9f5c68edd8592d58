"""How far the initialization of a table has come, kept at both sites, so that a killed one goes on (F09)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from concord.databases.contract.initialization import Progressed
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.jobs.initialization import TableInitialization
from concord.messages.errors import StructureChanged

_STORED = TypeAdapter(Progressed)
#: As PostgreSQL writes a snapshot.
_POSITION = re.compile(r"\d+:\d+:[\d,]*", re.ASCII)

#: Chunk writers share this lock, and a new initialization takes it alone. So every chunk written after the
#: initialization has begun sees it, and announces its rows to it.
_LOCK = "hashtext('concord initialization')"

STATEMENTS = (
    """
CREATE TABLE IF NOT EXISTS concord.initialization (
  synchronization text,
  table_name text,
  peer text NOT NULL,
  how text NOT NULL,
  named text NOT NULL,
  stale text,
  unsent_since text,
  source_position text,
  target_position text,
  bound jsonb,
  phase text NOT NULL DEFAULT 'begun' CHECK (phase IN ('begun', 'running', 'passed')),
  total bigint NOT NULL DEFAULT 0,
  looked_at bigint NOT NULL DEFAULT 0,
  written jsonb NOT NULL DEFAULT '{}',
  conflicts bigint NOT NULL DEFAULT 0,
  errors jsonb NOT NULL DEFAULT '[]',
  started_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (synchronization, table_name))""",
    "ALTER TABLE concord.initialization ADD COLUMN IF NOT EXISTS definition text",
)


def exclude_chunks(connection: Connection) -> None:
    """Wait for chunks that are being written, for the rest of this transaction."""
    run(connection, f"SELECT pg_advisory_xact_lock({_LOCK})")


def share(connection: Connection) -> None:
    """Held by every transaction that writes a chunk."""
    run(connection, f"SELECT pg_advisory_xact_lock_shared({_LOCK})")


def read(connection: Connection, synchronization: str, sites: Sequence[str]) -> dict[str, Progressed]:
    """The work under way, by table; `sites` are both of the pair, first the one where it is read.

    The applier's login may write it there. Raises StructureChanged for what Concord did not write.
    """
    found = rows(
        connection,
        "SELECT table_name, how, named, stale, unsent_since, source_position, target_position, bound, phase, total,"
        " looked_at, written, conflicts, errors, definition,"
        " CASE WHEN isfinite(started_at) THEN extract(epoch FROM now() - started_at)::float8 ELSE 0 END"
        f" FROM concord.initialization WHERE synchronization = {literal(synchronization)}",
    )
    return {row[0]: progressed(row, sites) for row in found}


def progressed(row: Sequence[Any], sites: Sequence[str]) -> Progressed:
    """The columns of one row, in the order of the fields. Raises StructureChanged."""
    names = [field.name for field in fields(Progressed)]
    try:
        found = _STORED.validate_python(dict(zip(names, row, strict=True)))
        positions = (found.unsent_since, found.source_position, found.target_position)
        unknown = {found.named, found.stale} - {*sites, None}
        if not unknown and all(each is None or _POSITION.fullmatch(each) for each in positions):
            return found
    except ValidationError:
        pass
    raise StructureChanged(
        f"{row[0]}: what {sites[0]} holds of its initialization is not as Concord wrote it; delete its row of"
        " concord.initialization there, and initialize again",
        table=row[0],
    )


def fits(left: Progressed, columns: int) -> bool:
    """Do its keys have as many columns as the table's?"""
    keys = [*([left.bound] if left.bound is not None else []), *(each.key for each in left.errors)]
    return all(len(key) == columns for key in keys)


def begin(connection: Connection, synchronization: str, peer: str, tables: Sequence[Progressed]) -> None:
    """Remember what is to be done; a table that is begun again starts over."""
    for each in tables:
        values = (
            synchronization,
            each.table,
            peer,
            each.how.value,
            each.named,
            each.stale,
            each.unsent_since,
            each.definition,
        )
        run(
            connection,
            f"DELETE FROM concord.initialization WHERE synchronization = {literal(synchronization)}"
            f" AND table_name = {literal(each.table)}",
            "INSERT INTO concord.initialization"
            " (synchronization, table_name, peer, how, named, stale, unsent_since, definition, total)"
            f" VALUES ({', '.join(map(literal, values))}, {each.total})",
        )


def place(connection: Connection, synchronization: str, each: Progressed) -> None:
    """Write down how far a table is."""
    bound = "NULL" if each.bound is None else f"{literal(json.dumps(each.bound))}::jsonb"
    errors = json.dumps([error.model_dump() for error in each.errors])
    run(
        connection,
        f"""
UPDATE concord.initialization SET phase = {literal(each.phase)}, bound = {bound},
       source_position = {literal(each.source_position)}, target_position = {literal(each.target_position)},
       unsent_since = {literal(each.unsent_since)}, looked_at = {each.looked_at},
       written = {literal(json.dumps(each.written or {}))}::jsonb, conflicts = {each.conflicts},
       errors = {literal(errors)}::jsonb, updated_at = now()
 WHERE synchronization = {literal(synchronization)} AND table_name = {literal(each.table)}""",
    )


def forget(connection: Connection, synchronization: str, tables: Sequence[str]) -> None:
    """The tables are initialized, and nothing is left to remember."""
    names = ", ".join(map(literal, tables)) or "NULL"
    run(
        connection,
        f"DELETE FROM concord.initialization WHERE synchronization = {literal(synchronization)}"
        f" AND table_name IN ({names})",
    )


def another_initializing(connection: Connection, synchronization: str, table: str) -> str | None:
    """Another synchronization that initializes the table at this site now."""
    found = rows(
        connection,
        f"SELECT synchronization FROM concord.initialization WHERE table_name = {literal(table)}"
        f" AND synchronization <> {literal(synchronization)}",
    )
    return str(found[0][0]) if found else None


def has_listeners(connection: Connection, synchronization: str, table: str) -> bool:
    """Does any other synchronization carry the table away from this site, or is about to?"""
    name, own = literal(table), literal(synchronization)
    return bool(
        rows(
            connection,
            "SELECT 1 FROM concord.link_state WHERE role = 'source' AND initialized ?"
            f" {name} AND split_part(link, '/', 1) <> {own} UNION ALL"
            f" SELECT 1 FROM concord.initialization WHERE table_name = {name} AND synchronization <> {own} LIMIT 1",
        )
    )


def has_forgotten(connection: Connection, table: str) -> bool:
    """Has a cleanup forgotten versions of rows here (rule 10)?"""
    query = "SELECT 1 FROM concord.replicated_table WHERE forgotten IS NOT NULL"
    return bool(rows(connection, f"{query} AND name = {literal(table)}"))


def anew(state: Progressed) -> Progressed:
    """The same table, to be passed from its beginning."""
    return replace(state, phase="begun", bound=None, looked_at=0, written=None, conflicts=0, errors=())


def summary(state: Progressed, notices: Sequence[str]) -> TableInitialization:
    """The outcome of a table."""
    return TableInitialization(
        table=state.table,
        how=state.how,
        rows=state.looked_at,
        written=state.written or {},
        conflicts=state.conflicts,
        errors=state.errors,
        notices=tuple(notices),
    )
