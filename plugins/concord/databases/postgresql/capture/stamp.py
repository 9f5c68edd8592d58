"""Stamping: many keys at once become edits of this very site, in the shadow table."""

from __future__ import annotations

from typing import Protocol

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.capture import before_image
from concord.databases.postgresql.capture.before_image import Parts
from concord.databases.postgresql.capture.shadow_table import WITH_WRITER, Shadow
from concord.databases.postgresql.facts import row_version

#: The site's clock in µs since 1970, where a row of concord.site is in sight.
_NOW = f"greatest({row_version.NOW}, stamp_floor + 1)"

#: The site as a relation of the statement that stamps: its name, its clock, and what the links have read of it.
SITE = f"(SELECT origin, {_NOW} AS now_us, acquired FROM concord.site) concord_site"

#: The questions of `upsert` to a vector, where nothing but the new row tells the clock.
_NOW_OF_THE_ROW = "jsonb_build_object('now', excluded.changed_at)"

_LATER = "greatest(excluded.changed_at, concord.vector_newest(s.vector) + 1)"


def vector(origin: str, now_us: str) -> str:
    """The vector of an edit that has seen nothing but itself."""
    return f"jsonb_build_object({origin}, jsonb_build_array({now_us}, 0))"


def stamp() -> str:
    """Origin, time, derivation and vector of an edit that is made now, in a statement that joins SITE."""
    origin, now_us = "concord_site.origin", "concord_site.now_us"
    return f"{origin}, {now_us}, 0, {vector(origin, now_us)}"


def restamp(shadow: Shadow, stamped: str) -> str:
    """Stamp many keys as an edit of this very site: what the trigger does, in a transaction that it is blind to.

    `stamped` is a subquery of the keys, under their own names, and `concord_deleted`. The rows have been written.
    """
    same = " AND ".join(f"t.{quote(name)} = x.{quote(name)}" for name in shadow.key)
    # A row that is found under the key of a deleted one was inserted since, and is not registered.
    writer = (
        f"CASE WHEN NOT x.concord_deleted THEN (SELECT t.xmin FROM {shadow.table.sql} t WHERE {same}) END"
    )
    written_by, base = (f", {writer}", WITH_WRITER) if shadow.by_log else ("", before_image.NONE)
    selected = f"""
    SELECT {shadow.columns_of("x")}, {stamp()}, x.concord_deleted, false, NULL, pg_current_xact_id(){written_by}
      FROM {stamped} x CROSS JOIN {SITE}"""
    # No before-image: what a link stamps itself, the other end has not seen either.
    return upsert(shadow, selected, "excluded.deleted", base=base)


class Stamped(Protocol):
    """A shadow table, as far as its rows are stamped."""

    @property
    def sql(self) -> str: ...

    @property
    def key_list(self) -> str: ...


def upsert(
    shadow: Stamped,
    selected: str,
    deleted: str,
    now: str = _NOW_OF_THE_ROW,
    base: Parts = before_image.NONE,
) -> str:
    """Write the selected stamps: later than anything a row's history knows, and than the stamp floor.

    A second form of `versions.row_version.next_stamp`.

    Hardly ever is the clock not the latest: that alone is asked of a vector, and no vector is taken apart. `now` is
    an object that says the clock as `now`. A placeholder, where a link has locked a key and not written it, is no
    history: the key may still be born.
    """
    overtaken = _overtaken(now)
    later = vector("excluded.origin", _LATER)
    return f"""{_insert(shadow, selected, base.names)}
    ON CONFLICT ({shadow.key_list}) DO UPDATE SET
      changed_at = CASE WHEN {overtaken} THEN {_LATER} ELSE excluded.changed_at END,
      vector = s.vector || CASE WHEN {overtaken} THEN {later} ELSE excluded.vector END,
      origin = excluded.origin, derived = 0, deleted = {deleted}, agreed = false, received_from = NULL,
      born = s.born OR (s.origin = '' AND excluded.born), position = excluded.position,
      out_of_scope = NULL{base.assignments};"""


def upsert_plainly(shadow: Shadow, selected: str) -> str:
    """The same for keys that live, before and after, and where the clock is the latest; others are left as they are.

    Every statement pays for each expression of this one, run or not.
    """
    return f"""{_insert(shadow, selected)}
    ON CONFLICT ({shadow.key_list}) DO UPDATE SET
      changed_at = excluded.changed_at, vector = s.vector || excluded.vector, origin = excluded.origin, derived = 0,
      agreed = false, received_from = NULL, position = excluded.position, out_of_scope = NULL
    WHERE NOT (s.deleted OR {_overtaken(_NOW_OF_THE_ROW)});"""


def _insert(shadow: Stamped, selected: str, more: str = "") -> str:
    return f"""
    INSERT INTO {shadow.sql} AS s
           ({shadow.key_list}, origin, changed_at, derived, vector, deleted, born, received_from,
            position{more}){selected}"""


def _overtaken(now: str) -> str:
    """Something in the row's history is as late as the clock.

    A vector that has nothing but its version's own origin says no more than `changed_at`. Any other is searched,
    its own entry, too: in a union that may be later than the version.
    """
    others = f"s.vector - s.origin <> '{{}}' AND jsonb_path_exists(s.vector, '$.*[0] ? (@ >= $now)', {now})"
    return f"(s.changed_at >= excluded.changed_at OR {others})"


def by_the_row(shadow: Shadow) -> str:
    """Whether a key is deleted that this very transaction has deleted and written, in whatever order its triggers
    tell.

    A statement is captured after its triggers have acted in turn; so the row itself is asked.
    """
    keys = ", ".join(f"s.{shadow.key_column(name)}" for name in shadow.key)
    return (
        "CASE WHEN s.deleted <> excluded.deleted AND s.position = excluded.position"
        f" THEN coalesce(NOT {shadow.standing}(TG_RELID, {keys}), excluded.deleted) ELSE excluded.deleted END"
    )


#: The plan must follow the index, whatever was known of the table when the session first asked. Rows that a policy
#: hides would read as deleted: to ask is an error then. To look into a CHECK would run functions of the table's owner.
_ASKING = " SET enable_seqscan = off SET row_security = off SET constraint_exclusion = off"


def standing(shadow: Shadow) -> list[str]:
    """The function that says whether a row with this key stands in the very table whose trigger asks.

    A function of its own, so that users write without it: their table may have got another name or owner. A table
    that stands under its old name then is never read: Concord's owner would lend it his rights. Where the table is
    in another schema by now, these may not be enough. The answer is NULL then, and the table's next run stops in
    any case.
    """
    types = ", ".join(shadow.table.column(name).type.sql for name in shadow.key)
    parameters = range(2, len(shadow.key) + 2)
    same, renamed = (
        " AND ".join(f"t.{quote(name)} = ${n}" for name, n in zip(shadow.key, numbers, strict=True))
        for numbers in (parameters, range(1, len(shadow.key) + 1))
    )
    given = ", ".join(f"${n}" for n in parameters)
    body = f"""
DECLARE
  stands boolean;
BEGIN
  IF to_regclass({literal(shadow.table.sql)}) = $1 THEN
    RETURN EXISTS (SELECT FROM ONLY {shadow.table.sql} t WHERE {same});
  END IF;
  BEGIN
    EXECUTE 'SELECT EXISTS (SELECT FROM ONLY ' || $1::regclass::text || {literal(f" t WHERE {renamed})")}
      INTO STRICT stands USING {given};
  EXCEPTION WHEN insufficient_privilege THEN
    RETURN NULL;
  END;
  RETURN stands;
END"""
    signature = f"{shadow.standing}(oid, {types})"
    return [
        f"""
CREATE OR REPLACE FUNCTION {signature} RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp{_ASKING}
AS {literal(body)}""",
        f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC",
    ]
