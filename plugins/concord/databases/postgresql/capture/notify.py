"""Users' commits are announced (NOTIFY) where a synchronization listens; what the applier writes never is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from concord.databases.contract.quoting import literal, qualified, shortened
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.capture.triggers import by_a_user
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, rows

#: Every site announces here, under the names of the tables that were changed.
CHANNEL = "concord"

#: Not among the capture triggers: without it changes arrive later, and none is missed. It sorts behind them, since
#: PostgreSQL runs triggers by name: it looks at what they have stamped.
TRIGGER = "zzz_concord_notify"

#: Of the server's NOTIFY queue, in use: from here on nothing is announced. A transaction that announces into a full
#: queue cannot commit. From half on the server's log names the session that keeps PostgreSQL from emptying it.
FULL = 0.6


def statements(
    connection: Connection, shadows: Iterable[Shadow], announced: Collection[str], applier: str
) -> list[str]:
    """Announce these tables, and no longer any other; idempotent."""
    made, announcing = list[str](), _announcing(connection)
    for shadow in shadows:
        if shadow.name in announced:
            made += _announce(shadow, applier)
        elif shadow.table.oid in announcing:
            made.append(f"DROP FUNCTION IF EXISTS {_function(shadow)}() CASCADE")  # with its trigger
    return made


def _announcing(connection: Connection) -> dict[int, bool]:
    """The tables that have the trigger, by their oids, and whether it fires whoever writes."""
    query = f"SELECT tgrelid::bigint, tgenabled = 'A' FROM pg_trigger WHERE tgname = {literal(TRIGGER)}"
    return dict(rows(connection, query))


def _function(shadow: Shadow) -> str:
    return qualified("concord", shortened(f"notify {shadow.name}"))


def _announce(shadow: Shadow, applier: str) -> list[str]:
    """Once a statement, and only where this transaction has stamped a row: an update that changed nothing is silent.
    So is every commit once the queue is fairly full.

    Equal announcements of one transaction are one, and go out when it commits. The shadow table's index on the
    position finds the row; it must, whatever was known of the table when the session first planned the question.
    """
    body = f"""
BEGIN
  IF EXISTS (SELECT 1 FROM {shadow.sql} s WHERE s.position = pg_current_xact_id_if_assigned())
     AND pg_notification_queue_usage() < {FULL}
  THEN
    PERFORM pg_notify({literal(CHANNEL)}, {literal(shadow.name)});
  END IF;
  RETURN NULL;
END"""
    function, table = _function(shadow), shadow.table.sql
    return [
        f"""
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS {literal(body)}""",
        f"REVOKE ALL ON FUNCTION {function}() FROM PUBLIC",
        f"CREATE OR REPLACE TRIGGER {TRIGGER} AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH STATEMENT"
        f" WHEN {by_a_user(applier)} EXECUTE FUNCTION {function}()",
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {TRIGGER}",
    ]


def check(connection: Connection, site: str, announced: Collection[Table]) -> Iterator[str]:
    """Tables whose commits nobody announces although a synchronization listens, each one line, and a queue that is too
    full for announcements."""
    announcing = _announcing(connection)
    for table in announced:
        if not announcing.get(table.oid):
            yield f"{site}: commits in {table.name} are not announced, and wait for the schedule; run `provision`"
    if announced:
        ((used,),) = rows(connection, "SELECT pg_notification_queue_usage()")
        if used >= FULL:
            yield (
                f"{site}: the server's NOTIFY queue is {used:.0%} full, so commits are not announced, and wait for the"
                " schedule; end the session that listens and stays in a transaction (the server's log names it)"
            )
