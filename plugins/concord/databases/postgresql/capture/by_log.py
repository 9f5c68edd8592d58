"""Capture by the site's own log: what a site keeps for it, in place of triggers (S1-32 b).

`log` reads the log, and `rows.logged_edits` makes changes of what stands in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.capture import untold_edits
from concord.databases.postgresql.capture.shadow_table import WRITTEN_BY, Shadow
from concord.databases.postgresql.facts import interruptions, ownership
from concord.databases.postgresql.facts.own_schema import PUBLICATION

#: The one row of a site whose log is read: the transactions that are registered, and how far the log is.
STATEMENTS = (
    """
CREATE TABLE IF NOT EXISTS concord.log_capture (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  registered pg_snapshot NOT NULL,
  level pg_lsn NOT NULL)""",
    # What links write is no edit of a user: their transactions, until the log was read past them.
    "CREATE TABLE IF NOT EXISTS concord.applied (transaction xid8 PRIMARY KEY)",
    # Of a table whose log is read: from where on, as what it is published, and why its history is lost.
    "ALTER TABLE concord.replicated_table ADD COLUMN IF NOT EXISTS logged_since pg_snapshot,"
    " ADD COLUMN IF NOT EXISTS published text, ADD COLUMN IF NOT EXISTS history_lost text",
    # It was an oid until format 27.
    "ALTER TABLE concord.replicated_table ALTER COLUMN published TYPE text",
)

#: Why the log has a gap where a table is published as another one than it was.
INTERRUPTED = "it was made anew, or was not published for a while"

#: First in each transaction of the applier's that may write a replicated row. It writes nothing where no log is read.
APPLIED = (
    "INSERT INTO concord.applied SELECT pg_current_xact_id() FROM concord.log_capture ON CONFLICT DO NOTHING"
)


def kept_in(shadow: Shadow) -> str:
    """The writer of the base row when its version was registered. No row is touched."""
    return f"ALTER TABLE {shadow.sql} ADD COLUMN IF NOT EXISTS {WRITTEN_BY} xid"


def _listed(shadow: Shadow) -> str:
    return f"{shadow.table.sql} ({', '.join(quote(name) for name in shadow.key)})"


def published(shadows: Sequence[Shadow], *, whole: bool) -> list[str]:
    """The keys of these tables are published, and nothing else. PostgreSQL leaves those alone that are so already.

    `whole`: there is a publication, and it brings every operation. Another one is made anew, with all of its members.
    """
    if whole:
        return [ownership.refused_publication(PUBLICATION), published_alone(shadows)]
    return [
        ownership.refused_publication(PUBLICATION),
        ownership.publication_dropped(PUBLICATION),
        f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {', '.join(map(_listed, shadows))}",
    ]


def published_alone(shadows: Sequence[Shadow]) -> str:
    """These tables and no other."""
    if not shadows:
        return ownership.publication_dropped(PUBLICATION)
    return f"ALTER PUBLICATION {PUBLICATION} SET TABLE {', '.join(map(_listed, shadows))}"


def membership(relation: str) -> str:
    """As what a table (its oid, as SQL) is published now; NULL where it is not."""
    return f"(SELECT m.identity FROM ({interruptions.published(PUBLICATION).members}) m WHERE m.relation = {relation})"


def interrupted(relation: str) -> str:
    """Condition on a row of `concord.replicated_table`: the log of the table (its oid, as SQL) is read, and has a gap.

    Before format 28 the last part of a membership's identity was all that was remembered of it.
    """
    now = membership(relation)
    return (
        "logged_since IS NOT NULL"
        f" AND coalesce(published::text NOT IN ({now}, split_part({now}, '/', 3)), true)"
    )


def remembering(shadow: Shadow) -> list[str]:
    """From here on the log tells of the table: triggers told of all before, and nobody writes it now. A table whose
    log is read already goes on from where it is, unless its log has a gap."""
    name, oid = literal(shadow.name), str(shadow.table.oid)
    gap = interrupted(oid)
    return [
        *losing(shadow.name, INTERRUPTED, gap),
        "UPDATE concord.replicated_table SET logged_since = pg_current_snapshot()"
        f" WHERE name = {name} AND (logged_since IS NULL OR {gap})",
        f"UPDATE concord.replicated_table SET published = {membership(oid)}"
        f" WHERE name = {name} AND published IS DISTINCT FROM {membership(oid)}",
    ]


def losing(name: str, why: str, where: str = "true") -> list[str]:
    """No link carries the table any more until it is initialized, and each says why."""
    this = f"name = {literal(name)} AND {where}"
    return [
        "UPDATE concord.link_state SET initialized = initialized - "
        f"{literal(name)} WHERE EXISTS (SELECT FROM concord.replicated_table WHERE {this})"
        f" AND initialized ? {literal(name)}",
        f"UPDATE concord.replicated_table SET history_lost = {literal(why)} WHERE {this}",
    ]


def forgetting(name: str) -> str:
    """From here on triggers tell of the table."""
    return (
        "UPDATE concord.replicated_table SET logged_since = NULL, published = NULL, history_lost = NULL"
        f" WHERE name = {literal(name)} AND logged_since IS NOT NULL"
    )


def begun() -> str:
    """The site's log is read from here on; one that is read already goes on from where it is."""
    return (
        "INSERT INTO concord.log_capture (registered, level) SELECT pg_current_snapshot(), pg_current_wal_insert_lsn()"
        " ON CONFLICT DO NOTHING"
    )


def begun_anew(shadows: Sequence[Shadow], since: int | None) -> list[str]:
    """The slot is another one than was read: between the two, the log of all tables has a gap. `since`: the first
    transaction that may stand in it; None where these rows do not tell their writers."""
    lost = (
        losing(each.name, "the log was lost before it was read", "logged_since IS NOT NULL")
        for each in shadows
    )
    return [
        # First: whatever a user commits from here on, the new slot tells.
        "UPDATE concord.log_capture SET registered = pg_current_snapshot(), level = pg_current_wal_insert_lsn()",
        *(untold_edits.untold(each, since) for each in shadows if since is not None),
        "DELETE FROM concord.applied",
        *chain.from_iterable(lost),
        # Ids of transactions may have begun anew with another server.
        *(f"UPDATE {each.sql} SET {WRITTEN_BY} = NULL WHERE {WRITTEN_BY} IS NOT NULL" for each in shadows),
    ]


#: Nothing reads the site's log any more.
ENDED = ("DELETE FROM concord.log_capture", "DELETE FROM concord.applied")
