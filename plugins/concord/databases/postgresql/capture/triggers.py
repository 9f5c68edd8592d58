"""The triggers that capture users' changes: by the statement, and by the row where that is all there is.

A statement's rows are stamped together, which costs a third of stamping each on its own. In three cases rows are
stamped one by one:

- PostgreSQL calls no statement trigger for rows that a subscription of its logical replication applies. The
  subscription works under replica role.
- Where before-images are kept, a statement may change a row twice (two foreign keys that cascade). It no longer
  knows then which of the row's states was the first.
- Some servers do not show a statement's triggers everything it did.
"""

from __future__ import annotations

from collections.abc import Mapping

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.capture import before_image, by_log, key_types
from concord.databases.postgresql.capture.before_image import Parts
from concord.databases.postgresql.capture.shadow_table import OF_ROWS, OF_STATEMENTS, Shadow
from concord.databases.postgresql.capture.stamp import (
    SITE,
    by_the_row,
    stamp,
    standing,
    upsert,
    upsert_plainly,
    vector,
)

_BY_STATEMENTS = tuple(f"zz_concord_{event}" for event in OF_STATEMENTS)
_BY_ROWS = ("zz_concord_capture", "zz_concord_capture_update")
_TRUNCATE = "zz_concord_truncate"

#: Major release → the minor release since which a statement's triggers are shown all rows of its MERGE, although
#: another part of it, or a cascade of a foreign key, writes the table as well (2026-02-12). Before, rows were missed.
_SHOWS_MERGES = {15: 150016, 16: 160012, 17: 170008, 18: 180002}


def statements(shadow: Shadow, applier: str, version: int) -> list[str]:
    """Everything that captures one table's changes, idempotent; what an older Concord or policy needed is taken.

    `version` is the server's own number.
    """
    if shadow.marks is not None:
        return shadow.marks.provisioning(shadow.table, shadow.sql)
    if shadow.by_log:
        return [by_log.kept_in(shadow), *removal(shadow)]
    rows_alone = shadow.keeps_base or version < _SHOWS_MERGES.get(version // 10_000, 0)
    by_statements = {} if rows_alone else _of_statements(shadow, applier)
    functions = {OF_ROWS: _of_rows(shadow), **by_statements}
    made = _definitions(shadow, applier, rows_alone=rows_alone)
    stale = sorted(shadow.table.triggers.keys() - made.keys())
    needless = sorted(set(OF_STATEMENTS) - functions.keys())
    return [
        *standing(shadow),
        *(_function(shadow, what, body) for what, body in functions.items()),
        *(f"REVOKE ALL ON FUNCTION {shadow.function(what)}() FROM PUBLIC" for what in functions),
        *(f"DROP TRIGGER IF EXISTS {quote(name)} ON {shadow.table.sql}" for name in stale),
        # With the triggers of whatever table had this one's name or place before.
        *(f"DROP FUNCTION IF EXISTS {shadow.function(what)}() CASCADE" for what in needless),
        *(f"CREATE OR REPLACE TRIGGER {name} {definition}" for name, definition in made.items()),
        enabling(shadow.table.sql, rows_alone=rows_alone),
    ]


def removal(shadow: Shadow) -> list[str]:
    """All that captured the table's changes goes."""
    functions = (shadow.function(what) for what in (OF_ROWS, *OF_STATEMENTS))
    return [
        *(
            f"DROP TRIGGER IF EXISTS {quote(name)} ON {shadow.table.sql}"
            for name in sorted(shadow.table.triggers)
        ),
        *(f"DROP FUNCTION IF EXISTS {each}() CASCADE" for each in functions),
    ]


def enabling(table: str, *, rows_alone: bool = False) -> str:
    """Enable each trigger as it is meant to be: whatever role a session has, exactly one kind captures its
    changes."""
    modes = {**dict.fromkeys(_BY_ROWS, "ALWAYS"), _TRUNCATE: "ALWAYS"}
    if not rows_alone:
        modes = dict.fromkeys(_BY_STATEMENTS, "") | modes | dict.fromkeys(_BY_ROWS, "REPLICA")
    return f"ALTER TABLE {table} " + ", ".join(
        f"ENABLE {mode} TRIGGER {name}" for name, mode in modes.items()
    )


def by_a_user(applier: str) -> str:
    """Blind to the applier and only to the applier: its setting and its login.

    In a trigger's WHEN it costs nothing for each row, but every statement reads it anew, which takes longer than to
    ask in the function. An unset setting reads as NULL, hence IS DISTINCT FROM.
    """
    unset = "current_setting('concord.applying', true) IS DISTINCT FROM 'on'"
    return f"({unset} OR session_user <> {literal(applier)})"


def _definitions(shadow: Shadow, applier: str, *, rows_alone: bool) -> Mapping[str, str]:
    """Each trigger's definition, after its name."""
    user, table = by_a_user(applier), shadow.table.sql
    old, new = "OLD TABLE AS old_rows", "NEW TABLE AS new_rows"
    seen = {"insert": new, "update": f"{old} {new}", "delete": old}
    calls = {what: f"EXECUTE FUNCTION {shadow.function(what)}()" for what in (OF_ROWS, *OF_STATEMENTS)}
    by_statements = {
        f"zz_concord_{event}": f"AFTER {event} ON {table} REFERENCING {rows} FOR EACH STATEMENT {calls[event]}"
        for event, rows in seen.items()
    }
    # By PostgreSQL's own rule no table with such a trigger for rows becomes a partition or an heir. A write through
    # a parent calls no trigger for statements.
    alone = "" if rows_alone else f" REFERENCING {new}"
    return {
        **({} if rows_alone else by_statements),
        "zz_concord_capture": f"AFTER INSERT OR DELETE ON {table} FOR EACH ROW WHEN ({user}) {calls[OF_ROWS]}",
        "zz_concord_capture_update": f"AFTER UPDATE ON {table}{alone} FOR EACH ROW"
        f" WHEN ({user} AND OLD.* *<> NEW.*) {calls[OF_ROWS]}",
        _TRUNCATE: f"BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION concord.refuse_truncate()",
    }


def _function(shadow: Shadow, what: str, body: str) -> str:
    """SECURITY DEFINER: application users need no right on the shadow table, and get none.

    Each kind of trigger has a function of its own: whatever else stood in it, every statement would pay for.
    """
    block = f"""
DECLARE
  here record;
BEGIN{body}
  RETURN NULL;
END"""
    # jit: a plan is kept as it was made for the session's first statement. After one of many rows, each later one
    # would wait for the compiler.
    return f"""
CREATE OR REPLACE FUNCTION {shadow.function(what)}() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off{before_image.SETTINGS if shadow.keeps_base else ""}
AS {literal(block)}"""


#: The site's facts about itself, once for all rows that a call stamps.
_HERE = f"""
  SELECT origin, now_us, acquired, {vector("origin", "now_us")} AS stamp, jsonb_build_object('now', now_us) AS now
    INTO STRICT here FROM {SITE};"""


def _of_statements(shadow: Shadow, applier: str) -> Mapping[str, str]:
    """The work after each kind of statement but the applier's; less after most updates of a single row."""
    single = f"{_single_update(shadow)}\n  IF FOUND THEN RETURN NULL; END IF;"
    stamped = {
        "insert": _HERE + _stamp(shadow, _all("new_rows", shadow, deleted="false", born="true")),
        "update": single + _HERE + _stamp(shadow, _updated(shadow)),
        "delete": _HERE + _stamp(shadow, _all("old_rows", shadow, deleted="true", born="false")),
    }
    unless_applied = f"\n  IF NOT ({by_a_user(applier)}) THEN RETURN NULL; END IF;"
    before = unless_applied + key_types.refusal(shadow, by_row=False)
    return {event: before + body for event, body in stamped.items()}


def _single_update(shadow: Shadow) -> str:
    """The one row that a statement updated, if it was one and kept its key. It is neither joined in full nor
    sorted, and the site is asked on the way. Most statements of applications are such, and feel every part of a
    plan.

    Only the rows after are counted: each that a statement updates in a table without partitions is in both.
    """
    selected = f"""
      SELECT {shadow.columns_of("concord_n")}, {stamp()}, false, false, NULL, pg_current_xact_id()
        FROM old_rows concord_o JOIN new_rows concord_n ON {_same_key(shadow)} CROSS JOIN {SITE}
       WHERE NOT EXISTS (SELECT FROM new_rows OFFSET 1) AND {_differ(shadow)}"""
    return upsert_plainly(shadow, selected)


def _of_rows(shadow: Shadow) -> str:
    """A key change is a tombstone for the old key and a change for the new one (S1-29, F37)."""
    same_key = " AND ".join(f"NEW.{quote(column)} = OLD.{quote(column)}" for column in shadow.key)
    moved = f"TG_OP = 'UPDATE' AND NOT ({same_key})"
    base = before_image.DROPPED if shadow.keeps_base else before_image.NONE
    gone = _stamp(shadow, _one("OLD", shadow, deleted="true", born="false"), base)
    born = _stamp(shadow, _one("NEW", shadow, deleted="false", born="true"), base)
    return f"""{key_types.refusal(shadow, by_row=True)}{_unless_listed(shadow)}{_HERE}
  IF TG_OP = 'DELETE' OR ({moved}) THEN{gone}
  END IF;
  IF TG_OP = 'INSERT' OR ({moved}) THEN{born}
{_same_key_updated(shadow)}
  END IF;"""


def _same_key_updated(shadow: Shadow) -> str:
    """The image is kept while the columns have the types of provisioning: a cast of another type is its owner's. The
    table's next run stops in any case, and a missing image costs a merge alone."""
    changed = _one("NEW", shadow, deleted="false", born="false")
    plainly = f"  ELSIF TG_OP = 'UPDATE' THEN{_stamp(shadow, changed)}"
    if not shadow.keeps_base:
        return plainly
    kept = _stamp(shadow, changed, before_image.kept(shadow.columns))
    return f"  ELSIF TG_OP = 'UPDATE' AND {key_types.unaltered(shadow.columns)} THEN{kept}\n{plainly}"


def _stamp(shadow: Shadow, changed: str, base: Parts = before_image.NONE) -> str:
    """`changed` is a subquery of the keys, under their own names, `concord_deleted` and `concord_born`."""
    selected = f"""
    SELECT {shadow.columns_of("x")}, here.origin, here.now_us, 0, here.stamp, x.concord_deleted, x.concord_born, NULL,
           pg_current_xact_id(){base.values}
      FROM ({changed}) x"""
    return upsert(shadow, selected, by_the_row(shadow), "here.now", base)


def _one(row: str, shadow: Shadow, *, deleted: str, born: str) -> str:
    return f"SELECT {shadow.columns_of(row)}, {deleted} AS concord_deleted, {born} AS concord_born"


def _all(rows: str, shadow: Shadow, *, deleted: str, born: str) -> str:
    """In the order of keys, as links lock them; once each, though a trigger may have a statement insert a key
    twice."""
    keys = shadow.columns_of("concord_x")
    return (
        f"SELECT DISTINCT {keys}, {deleted} AS concord_deleted, {born} AS concord_born"
        f" FROM {rows} concord_x ORDER BY {keys}"
    )


def _updated(shadow: Shadow) -> str:
    """Rows before and after, paired by their keys. A key without a row after is gone, one without a row before is
    born, one whose rows are the same is not changed. A FULL JOIN is never a nested loop, whatever a plan was first
    made for.
    """
    key = shadow.key[0]
    either = {name: f"coalesce(concord_n.{quote(name)}, concord_o.{quote(name)})" for name in shadow.key}
    keys = ", ".join(either.values())
    named = ", ".join(f"{value} AS {quote(name)}" for name, value in either.items())
    gone, born = f"concord_n.{quote(key)} IS NULL", f"concord_o.{quote(key)} IS NULL"
    return f"""
        SELECT DISTINCT ON ({keys}) {named}, {gone} AS concord_deleted, {born} AS concord_born
          FROM old_rows concord_o FULL JOIN new_rows concord_n ON {_same_key(shadow)}
         WHERE {gone} OR {born} OR {_differ(shadow)} ORDER BY {keys}"""


def _same_key(shadow: Shadow) -> str:
    return " AND ".join(f"concord_o.{quote(name)} = concord_n.{quote(name)}" for name in shadow.key)


def _differ(shadow: Shadow) -> str:
    if not shadow.unlisted:
        return "(concord_o.*) *<> (concord_n.*)"
    return f"NOT {_same_listed(shadow, 'concord_o', 'concord_n')}"


def _same_listed(shadow: Shadow, *rows: str) -> str:
    one, other = ("ROW(" + ", ".join(f"{row}.{c.sql}" for c in shadow.columns) + ")" for row in rows)
    return f"record_image_eq({one}, {other})"


def _unless_listed(shadow: Shadow) -> str:
    """An update of nothing but unlisted columns is no change: it would win conflicts that it has no part in.

    Tested here and not in the trigger's WHEN, which would keep the columns from being altered.
    """
    if not shadow.unlisted:
        return ""
    return f"""
  IF TG_OP = 'UPDATE' THEN
    IF {_same_listed(shadow, "OLD", "NEW")} THEN RETURN NULL; END IF;
  END IF;"""
