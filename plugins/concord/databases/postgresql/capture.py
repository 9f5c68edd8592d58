"""Shadow tables and the triggers that stamp them: one row per key, the newest state only (design 5)."""

from __future__ import annotations

from dataclasses import dataclass

from concord.databases.dialect import VERSION_TYPES
from concord.databases.postgresql import before_image
from concord.databases.postgresql.catalogue import Column, Table, fingerprint
from concord.databases.postgresql.marks import MEMORY, SiteMarks, marks_at
from concord.databases.quoting import literal, qualified, quote, shortened
from concord.replication_set import ReplicatedTable

#: The version columns of every shadow table, after the key.
VERSION_COLUMNS = tuple(VERSION_TYPES)

#: Names of Concord's own beside a key: of the shadow table, its trigger, and the verdicts of the write step.
OWN_NAMES = {
    *VERSION_COLUMNS,
    *(f"{side}_{column}" for side in "sp" for column in VERSION_COLUMNS),
    *MEMORY,
    *before_image.COLUMNS,
    *before_image.MADE,
    *(
        "agreed",
        "received_from",
        "position",
        "here",
        "now_us",
        "n",
        "private",
        "verdict",
        "resolver",
        "reason",
    ),
}


@dataclass(frozen=True, slots=True)
class Shadow:
    """The shadow table of one replicated table, and which of the table's columns it watches."""

    table: Table
    name: str  #: the table's name in the replication set
    key: tuple[str, ...]
    listed: tuple[str, ...] | None = None  #: the columns that are replicated; None is all
    marks: SiteMarks | None = None  #: kept by the application; None where triggers keep the shadow
    keeps_base: bool = False  #: what a row was before the local edits is kept, for resolvers that merge

    @classmethod
    def of(cls, wanted: ReplicatedTable, site: str, table: Table) -> Shadow:
        """The shadow of a replicated table as it stands at one site."""
        key, marks = table.key_of(wanted.key_at(site)), marks_at(wanted, site, table)
        return cls(table, wanted.name, key, wanted.columns_at(site), marks, wanted.keeps_base)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that travel, in the table's own order."""
        sent = tuple(c for c in self.table.sent if self.listed is None or c.name in self.listed)
        return self.typed(sent)

    def typed(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns, a mark among them as what it is."""
        return columns if self.marks is None else self.marks.typed(columns)

    @property
    def unlisted(self) -> tuple[Column, ...]:
        """The columns that no link reads or writes, but those that the database computes."""
        return tuple(c for c in self.table.sent if self.listed is not None and c.name not in self.listed)

    @property
    def structure(self) -> str:
        """Fingerprint of what is replicated: another one stops the table."""
        return self.table.structure if self.listed is None else fingerprint(self.columns)

    @property
    def relation(self) -> str:
        """Its name inside the schema `concord`."""
        return shortened(self.name)

    @property
    def sql(self) -> str:
        return qualified("concord", self.relation)

    @property
    def function(self) -> str:
        return qualified("concord", shortened(f"capture {self.name}"))

    def key_column(self, name: str) -> str:
        """What a key column is called beside Concord's own: `origin_` where the table's own is `origin`."""
        own = name
        while own in OWN_NAMES or (own != name and own in self.key):
            own += "_"
        return quote(own)

    @property
    def key_list(self) -> str:
        return ", ".join(self.key_column(column) for column in self.key)

    def columns_of(self, row: str) -> str:
        return ", ".join(f"{row}.{quote(column)}" for column in self.key)


def table_statement(shadow: Shadow) -> str:
    """One row per key. The index on the position makes acquisition cost what changed, not what exists."""
    key = ", ".join(
        f"{shadow.key_column(name)} {shadow.table.column(name).type.sql} NOT NULL" for name in shadow.key
    )
    return f"""
CREATE TABLE IF NOT EXISTS {shadow.sql} (
  {key},
  origin text NOT NULL,
  changed_at bigint NOT NULL,
  derived integer NOT NULL,
  vector jsonb NOT NULL,
  deleted boolean NOT NULL,
  born boolean NOT NULL,
  agreed boolean NOT NULL DEFAULT false,
  received_from text,
  position xid8 NOT NULL,
  PRIMARY KEY ({shadow.key_list}))
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)"""


def restamp(shadow: Shadow, stamped: str) -> str:
    """Stamp many keys at once as an edit of this very site: what the trigger does, in a transaction that it is
    blind to. `stamped` is a subquery of the keys, under their own names, and `concord_deleted`."""
    now = "greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, stamp_floor + 1)"
    here = f"(SELECT origin, {now} AS now_us FROM concord.site) here"
    return _mark(shadow, "x", "x.concord_deleted", "false", f"\n      FROM {stamped} x CROSS JOIN {here}")


def _mark(
    shadow: Shadow, row: str, deleted: str, born: str, stamped: str = "", *, update: bool = False
) -> str:
    """Stamp one key: later than anything this row's history knows, and than the stamp floor (D2).

    A placeholder, where a link has locked a key and not written it, is no history: the key may still be born.
    """
    newest = "(SELECT max((e.value ->> 0)::bigint) FROM jsonb_each(s.vector) e)"
    keeps = shadow.keeps_base and not stamped  # what a link stamps itself, the other end has not seen either
    base = before_image.kept(shadow.columns, update=update) if keeps else before_image.NONE
    return f"""
    INSERT INTO {shadow.sql} AS s
           ({shadow.key_list}, origin, changed_at, derived, vector, deleted, born, received_from, position{base.names})
    SELECT {shadow.columns_of(row)}, here.origin, now_us, 0,
           jsonb_build_object(here.origin, jsonb_build_array(now_us, 0)), {deleted}, {born}, NULL,
           pg_current_xact_id(){base.values}{stamped}
    ON CONFLICT ({shadow.key_list}) DO UPDATE SET
      (changed_at, vector) = (
        SELECT stamp.at, s.vector || jsonb_build_object(excluded.origin, jsonb_build_array(stamp.at, 0))
          FROM (SELECT greatest(excluded.changed_at, {newest} + 1) AS at) stamp),
      origin = excluded.origin, derived = 0, deleted = excluded.deleted, agreed = false, received_from = NULL,
      born = s.born OR (s.origin = '' AND excluded.born), position = excluded.position,
      out_of_scope = NULL{base.assignments};"""


def function_statement(shadow: Shadow) -> str:
    """SECURITY DEFINER: application users need no right on the shadow table, and get none (S7, S16)."""
    same_key = " AND ".join(f"NEW.{quote(column)} = OLD.{quote(column)}" for column in shadow.key)
    body = f"""
DECLARE
  here concord.site%ROWTYPE;
  now_us bigint;
BEGIN{_unless_listed(shadow)}
  SELECT * INTO STRICT here FROM concord.site;
  now_us := greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, here.stamp_floor + 1);
  -- A key change is a tombstone for the old key and a change for the new one (S1-29, F37).
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND NOT ({same_key})) THEN{_mark(shadow, "OLD", "true", "false")}
  END IF;
  IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND NOT ({same_key})) THEN{_mark(shadow, "NEW", "false", "true")}
  ELSIF TG_OP = 'UPDATE' THEN{_mark(shadow, "NEW", "false", "false", update=True)}
  END IF;
  RETURN NULL;
END"""
    return f"""
CREATE OR REPLACE FUNCTION {shadow.function}() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp{before_image.SETTINGS if shadow.keeps_base else ""}
AS {literal(body)}"""


def _unless_listed(shadow: Shadow) -> str:
    """An update of nothing but unlisted columns is no change: it would win conflicts that it has no part in.

    Tested here and not in the trigger's WHEN, which would keep the columns from being altered.
    """
    if not shadow.unlisted:
        return ""
    new, old = (
        "ROW(" + ", ".join(f"{row}.{column.sql}" for column in shadow.columns) + ")" for row in ("NEW", "OLD")
    )
    return f"""
  IF TG_OP = 'UPDATE' AND record_image_eq({old}, {new}) THEN RETURN NULL; END IF;"""


def trigger_statements(shadow: Shadow, applier: str) -> list[str]:
    """ENABLE ALWAYS; blind to the applier and only to the applier: its setting and its login (design 5).

    The test stands in WHEN, where it costs nothing. An unset setting reads as NULL, hence IS DISTINCT FROM.
    """
    unset = "current_setting('concord.applying', true) IS DISTINCT FROM 'on'"
    not_applying = f"({unset} OR session_user <> {literal(applier)})"
    changed = f"{not_applying} AND OLD *<> NEW"
    table, function = shadow.table.sql, shadow.function
    triggers = {
        "zz_concord_capture": f"AFTER INSERT OR DELETE ON {table} FOR EACH ROW WHEN ({not_applying})"
        f" EXECUTE FUNCTION {function}()",
        "zz_concord_capture_update": f"AFTER UPDATE ON {table} FOR EACH ROW WHEN ({changed})"
        f" EXECUTE FUNCTION {function}()",
        "zz_concord_truncate": f"BEFORE TRUNCATE ON {table} FOR EACH STATEMENT"
        " EXECUTE FUNCTION concord.refuse_truncate()",
    }
    created = [f"CREATE OR REPLACE TRIGGER {name} {definition}" for name, definition in triggers.items()]
    always = ", ".join(f"ENABLE ALWAYS TRIGGER {name}" for name in triggers)
    return [*created, f"ALTER TABLE {table} {always}"]


def statements(shadow: Shadow, applier: str) -> list[str]:
    """Everything that captures one table's changes, idempotent, cheap on a billion rows: no row is touched."""
    carried = [
        table_statement(shadow),
        # Which filter the row has left while its base row is gone here; added alone, as to a site of an older Concord.
        f"ALTER TABLE {shadow.sql} ADD COLUMN IF NOT EXISTS out_of_scope text",
        # How often, run after run, a link wrote over a local answer to its last write, and in which session (`watch`).
        f"ALTER TABLE {shadow.sql} ADD COLUMN IF NOT EXISTS rebounds integer,"
        " ADD COLUMN IF NOT EXISTS rebounded_in text",
        *([before_image.kept_in(shadow.sql)] if shadow.keeps_base else []),
        f"CREATE INDEX IF NOT EXISTS {quote(shortened(shadow.relation + ' position'))} ON {shadow.sql} (position)",
    ]
    if shadow.marks is not None:
        return carried + shadow.marks.provisioning(shadow.table, shadow.sql)
    return [
        *carried,
        function_statement(shadow),
        f"REVOKE ALL ON FUNCTION {shadow.function}() FROM PUBLIC",
        *trigger_statements(shadow, applier),
    ]
