"""Rows that the repair of a foreign key changes, and that did not arrive. Where the log reports edits, such a row may
have one that is not registered. The edit has no version yet, and must be neither overwritten nor logged under an
older one.

A row is as it was registered where its writer (xmin) is known. Either its shadow row names the writer, or none of the
transactions that are still to be registered can be the writer. Otherwise the try ends. The next try locks the row
first, and registers what has been committed while it is locked. So users who keep on editing the row cannot prevent
the repair.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture import untold_edits
from concord.databases.postgresql.capture.shadow_table import WRITTEN_BY
from concord.databases.postgresql.constraints import references
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.rows.shape import Shape
from concord.messages.errors import ConstraintViolated, WriteContended

_SINCE = (
    "(SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS now,"
    " pg_snapshot_xmin(registered)::text::bigint AS since FROM concord.log_capture) n"
)


@dataclass
class RepairedRows:
    """Those of one transmission's write, across all of its tries."""

    #: By table, the keys (`references.key_text`) of rows that an earlier try found edited.
    _edited: dict[str, tuple[Shape, set[str]]] = field(default_factory=dict)

    def lock(self, connection: Connection) -> bool:
        """Lock the rows that earlier tries found edited, and remember their writers; are there any?

        To be called before what has been committed is registered: then each of these writers is.
        """
        for shape, keys in self._edited.values():
            listed = references.listed_keys(shape, sorted(keys))
            key = references.key_text(shape, "k")
            run(
                connection,
                _locked(shape, listed),
                f"CREATE TEMPORARY TABLE {_held(shape)} ON COMMIT DROP AS SELECT {key} AS key, t.xmin AS writer"
                f" FROM {listed} LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 'k')}",
            )
        return bool(self._edited)

    def require(self, connection: Connection, shape: Shape, keys: str) -> None:
        """Lock the rows with such keys; `keys` is a subquery of them, as `key`.

        Raises WriteContended where one may have an edit that is not registered, and ConstraintViolated where edits of
        the table have been lost.
        """
        if not shape.by_log:
            return
        _refuse_lost_history(connection, shape)
        listed = (
            f"(SELECT u.key AS concord_row, {references.key_of(shape, 'u.key')}"
            f" FROM (SELECT DISTINCT key FROM {keys} u WHERE key IS NOT NULL) u) k"
        )
        run(connection, _locked(shape, listed))
        edited = [key for (key,) in rows(connection, self._not_as_registered(shape, listed))]
        if edited:
            self._edited.setdefault(shape.name, (shape, set()))[1].update(edited)
            raise WriteContended(
                f"{shape.site}: {shape.name}: a row was edited that a link is about to change together with the row"
                " that it refers to, or that refers to it; an application was faster"
            )

    def _not_as_registered(self, shape: Shape, listed: str) -> str:
        shadow_key = f"p.{shape.shadow.key_column(shape.key_names[0])}"
        held = "SELECT NULL::text AS key, NULL::xid AS writer WHERE false"
        if shape.name in self._edited:
            held = f"SELECT key, writer FROM pg_temp.{_held(shape)}"
        # A row that has no version, and no edit since the log has been read.
        untouched = f"{shadow_key} IS NULL AND {untold_edits.whole('t.concord_writer')} < n.since"
        present = f"t.concord_writer = p.{WRITTEN_BY} OR t.concord_writer = h.writer OR {untouched}"
        deleted = "p.deleted AND p.origin <> '' OR h.key IS NOT NULL AND h.writer IS NULL"
        found = f"SELECT t.xmin AS concord_writer FROM {shape.table.sql} t WHERE {shape.same_key('t', 'k')}"
        return (
            f"SELECT k.concord_row FROM {listed} LEFT JOIN {_SINCE} ON true"
            f" LEFT JOIN LATERAL ({found} OFFSET 0) t ON true"
            f" LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 'k')}"
            f" LEFT JOIN ({held}) h ON h.key = k.concord_row"
            f" WHERE NOT coalesce(CASE WHEN t.concord_writer IS NULL THEN {deleted} ELSE {present} END, false)"
        )


def keys_in(relation: str, column: str = "key") -> str:
    """Such keys of a temporary table."""
    return f"(SELECT {column} AS key FROM {relation})"


def _held(shape: Shape) -> str:
    return f"held_{shape.table.oid}"


def _locked(shape: Shape, listed: str) -> str:
    """In the order in which applications and links lock them."""
    return (
        f"SELECT count(*) FROM (SELECT * FROM {listed} ORDER BY {shape.keys_of('k')}) k CROSS JOIN LATERAL"
        f" (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 'k')} FOR NO KEY UPDATE) x"
    )


def _refuse_lost_history(connection: Connection, shape: Shape) -> None:
    """Users' edits since then are unknown, even where the writers of rows are known."""
    query = f"SELECT history_lost FROM concord.replicated_table WHERE name = {literal(shape.name)}"
    for (why,) in rows(connection, f"{query} AND history_lost IS NOT NULL"):
        raise ConstraintViolated(
            f"{shape.site}: {shape.name}: {why}. So a link changes none of its rows, and rows that refer to them, or"
            " that they refer to, wait. Run `provision`, then `initialize NAME`; nothing was written"
        )
