"""Late indexes: those that only make queries faster are dropped while an empty table is loaded, and built when it is.

As pg_restore does, since an index takes each row at a place of its own, and builds faster from all rows at once.
The site's installer drops and notes them in one transaction, so that the next run after a kill builds them. It
builds them concurrently, so that no user's write waits. Left as they are: what keeps rows apart (unique, exclusion,
replica identity), and whatever its definition alone would not bring back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psycopg

from concord.databases.contract.ends import Progress
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, rows, run
from concord.databases.postgresql.rows.shape import Shape
from concord.jobs.site import Credentials
from concord.messages.event_log import log_event, logger_named
from concord.tables.replication_set import TableName

logger = logger_named("concord.initialize")

STATEMENTS = (
    """
CREATE TABLE IF NOT EXISTS concord.late_index (
  relation text,
  name text,
  definition text NOT NULL,
  dropped_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (relation, name))""",
)

#: The installer's name in `pg_stat_activity`.
APPLICATION = "concord initialize"

#: Users of the table wait for us no longer than that; then its indexes stay.
PATIENCE = "500ms"

_MAY_NOT = (psycopg.errors.InsufficientPrivilege, psycopg.errors.LockNotAvailable)
_MEANS_NOTHING = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedObject,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.InvalidSchemaName,
)

#: Of an ordinary table `{oid}`, on its own columns.
_DROPPABLE = """
SELECT format('%I.%I', n.nspname, c.relname), pg_get_indexdef(c.oid)
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE i.indrelid = {oid} AND t.relkind = 'r' AND NOT t.relispartition AND c.relkind = 'i' AND c.reltablespace = 0
   AND i.indisvalid AND NOT i.indisunique AND NOT i.indisexclusion AND NOT i.indisreplident AND NOT i.indisclustered
   AND i.indexprs IS NULL AND i.indpred IS NULL
   AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid)
   AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                      AND d.deptype IN ('x', 'e', 'P', 'S'))
   AND NOT EXISTS (SELECT 1 FROM pg_description d WHERE d.classoid = 'pg_class'::regclass AND d.objoid = c.oid)
 ORDER BY 1"""


@contextmanager
def without(credentials: Credentials | None, shape: Shape, progress: Progress) -> Iterator[None]:
    """The block is run without them, if the site's installer is known; then they are built, also when it fails.

    Raises SiteUnavailable or ConnectionRefused.
    """
    if credentials is None:
        yield
        return
    with connect(credentials, APPLICATION) as installer:
        take_away(installer, shape)
        try:
            yield
        except Exception:
            with suppress(
                psycopg.Error
            ):  # what went wrong first must be told; what is noted is built the next time
                put_back(installer, [shape.table.name])
            raise
        progress("indexes")
        try:
            put_back(installer, [shape.table.name])
        except psycopg.Error as error:
            raise in_our_words(error, shape.name) from error


def take_away(installer: Connection, shape: Shape) -> None:
    """Drop the table's indexes that may go, and note them. They stay where the installer may not, or users are in the
    way."""
    found = rows(installer, _DROPPABLE.format(oid=shape.table.oid))
    if not found:
        return
    relation = literal(str(shape.table.name))
    noted = ", ".join(f"({relation}, {literal(name)}, {literal(definition)})" for name, definition in found)
    try:
        with installer.transaction():
            run(
                installer,
                f"SET LOCAL lock_timeout = '{PATIENCE}'",
                f"INSERT INTO concord.late_index (relation, name, definition) VALUES {noted}"
                " ON CONFLICT (relation, name) DO UPDATE SET definition = excluded.definition, dropped_at = now()",
                f"DROP INDEX {', '.join(name for name, _ in found)}",
            )
    except _MAY_NOT as error:
        log_event(logger, "indexes stay", table=shape.name, why=type(error).__name__)


def missing(connection: Connection, tables: Sequence[TableName]) -> list[tuple[str, str, str]]:
    """Relation, name and definition of what was dropped and is not built yet."""
    names = ", ".join(literal(str(name)) for name in tables) or "NULL"
    query = (
        f"SELECT relation, name, definition FROM concord.late_index WHERE relation IN ({names}) ORDER BY 1, 2"
    )
    return [
        (str(relation), str(name), str(definition)) for relation, name, definition in rows(connection, query)
    ]


def put_back(installer: Connection, tables: Sequence[TableName]) -> int:
    """Build what was dropped of these tables, now or before a kill; how many."""
    dropped = missing(installer, tables)
    for relation, name, definition in dropped:
        _build(installer, name, definition)
        run(
            installer,
            f"DELETE FROM concord.late_index WHERE relation = {literal(relation)} AND name = {literal(name)}",
        )
    return len(dropped)


def put_back_left(
    connection: Connection, credentials: Credentials | None, site: str, tables: Sequence[TableName]
) -> None:
    """The same for what a load that was killed has left; without the installer, a warning says what to build."""
    left = missing(connection, tables)
    if left and credentials is not None:
        with connect(credentials, APPLICATION) as installer:
            put_back(installer, tables)
        return
    for _, name, definition in left:
        logger.warning(
            "%s: a load that was killed left the index %s dropped, and Airflow has no connection of the site's"
            " installer to build it (`initialize.late_indexes`): %s",
            site,
            name,
            definition,
        )


def _build(installer: Connection, name: str, definition: str) -> None:
    """Unless somebody has; one that was killed halfway is built anew. None where the table is another one now."""
    there = rows(
        installer, f"SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass({literal(name)})"
    )
    if there == [(True,)]:
        return
    try:
        if there:
            run(installer, f"DROP INDEX CONCURRENTLY {name}")
        run(installer, definition.replace("CREATE INDEX ", "CREATE INDEX CONCURRENTLY ", 1))
    except _MEANS_NOTHING as error:
        log_event(logger, "index not built", name=name, definition=definition, why=type(error).__name__)
