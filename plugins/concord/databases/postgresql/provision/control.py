"""Concord's own tables at a site: identity, epochs, link state, conflict log, staging."""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture import by_log, private_columns
from concord.databases.postgresql.facts import interruptions
from concord.databases.postgresql.facts.own_schema import FORMAT, IDENTITY, SCHEMA, STAGING
from concord.databases.postgresql.initialize import late_indexes, progress
from concord.databases.postgresql.ledger import retention, waiting_table
from concord.databases.postgresql.operations import table
from concord.databases.postgresql.queued import compensation, shown_version, version_columns
from concord.databases.postgresql.replay import level
from concord.databases.postgresql.replication import consumed_since, recorded_copies
from concord.versions.row_version import NEWEST

#: What another site holds as a vector may be none.
_OBJECT = "CASE jsonb_typeof({0}) WHEN 'object' THEN {0} ELSE '{{}}' END"

#: A second form of `versions.row_version.unite`, and of what one vector says of another.
_VECTOR_FUNCTIONS = [
    f"""
CREATE OR REPLACE FUNCTION concord.vector_includes(whole jsonb, part jsonb) RETURNS boolean LANGUAGE sql
IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(bool_and(coalesce(whole -> e.key, '[0, 0]') >= e.value), true)
          FROM jsonb_each({_OBJECT.format("part")}) e)""",
    f"""
CREATE OR REPLACE FUNCTION concord.vector_unite(one jsonb, other jsonb) RETURNS jsonb LANGUAGE sql
IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(jsonb_object_agg(e.key, greatest(one -> e.key, other -> e.key)), '{{}}')
          FROM jsonb_each({_OBJECT.format("one")} || {_OBJECT.format("other")}) e)""",
    # The newest stamp (µs); NULL of none. A subquery instead would be made ready by each statement, and hardly run.
    # A trigger asks it in the transaction of a user: it answers whatever a vector holds, and leaves out what no edit
    # could follow.
    f"""
CREATE OR REPLACE FUNCTION concord.vector_newest(vector jsonb) RETURNS bigint LANGUAGE sql
IMMUTABLE PARALLEL SAFE
RETURN (SELECT max(CASE WHEN jsonb_typeof(e.value -> 0) = 'number'
                         AND (e.value ->> 0)::numeric BETWEEN 0 AND {NEWEST} THEN (e.value ->> 0)::numeric END)::bigint
          FROM jsonb_each({_OBJECT.format("vector")}) e)""",
]

_TABLES = [
    """
CREATE TABLE IF NOT EXISTS concord.site (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  name text NOT NULL,
  incarnation integer NOT NULL CHECK (incarnation > 0),
  origin text NOT NULL GENERATED ALWAYS AS (name || '#' || incarnation::text) STORED,
  identity text NOT NULL,
  heartbeat bigint NOT NULL DEFAULT 0,
  stamp_floor bigint NOT NULL DEFAULT 0,
  format integer NOT NULL)""",
    # Where the newest snapshot of a link stands that sends from here.
    "ALTER TABLE concord.site ADD COLUMN IF NOT EXISTS acquired pg_snapshot",
    """
CREATE TABLE IF NOT EXISTS concord.synchronization (
  name text PRIMARY KEY,
  epoch bigint NOT NULL)""",
    """
CREATE TABLE IF NOT EXISTS concord.link_state (
  link text PRIMARY KEY,
  role text NOT NULL CHECK (role IN ('source', 'target')),
  peer text NOT NULL,
  initialized jsonb NOT NULL DEFAULT '{}',
  history jsonb NOT NULL DEFAULT '[]',
  floor text,
  updated_at timestamptz NOT NULL DEFAULT now())""",
    "ALTER TABLE concord.link_state ADD COLUMN IF NOT EXISTS forced_at timestamptz",
    """
CREATE TABLE IF NOT EXISTS concord.replicated_table (
  name text PRIMARY KEY,
  relation text NOT NULL,
  shadow text NOT NULL,
  key jsonb NOT NULL,
  structure text NOT NULL,
  triggers jsonb NOT NULL)""",
    "ALTER TABLE concord.replicated_table ADD COLUMN IF NOT EXISTS columns jsonb,"
    " ADD COLUMN IF NOT EXISTS mapping jsonb, ADD COLUMN IF NOT EXISTS keeps_base boolean NOT NULL DEFAULT false",
    """
CREATE TABLE IF NOT EXISTS concord.snapshot (
  name text PRIMARY KEY,
  kind text NOT NULL,
  relation text NOT NULL,
  guard text NOT NULL)""",
    """
CREATE TABLE IF NOT EXISTS concord.conflict (
  id text PRIMARY KEY,
  synchronization text NOT NULL,
  link text NOT NULL,
  transmission text NOT NULL,
  table_name text NOT NULL,
  key jsonb NOT NULL,
  type text NOT NULL,
  resolver text NOT NULL,
  reason text NOT NULL,
  winner_site text NOT NULL,
  loser_site text NOT NULL,
  winner_version jsonb NOT NULL,
  loser_version jsonb NOT NULL,
  winner_row jsonb,
  loser_row jsonb,
  decided_at timestamptz NOT NULL DEFAULT now())""",
    *level.STATEMENTS,
    *table.STATEMENTS,
    *interruptions.STATEMENTS,
    *consumed_since.STATEMENTS,
    *recorded_copies.STATEMENTS,
    *compensation.STATEMENTS,
    *shown_version.STATEMENTS,
    *version_columns.STATEMENTS,
    *progress.STATEMENTS,
    *late_indexes.STATEMENTS,
    *waiting_table.STATEMENTS,
    "ALTER TABLE concord.replicated_table ADD COLUMN IF NOT EXISTS tracking jsonb NOT NULL DEFAULT '{}',"
    " ADD COLUMN IF NOT EXISTS registered bigint, ADD COLUMN IF NOT EXISTS writers jsonb NOT NULL DEFAULT '{}'",
    *by_log.STATEMENTS,
    "ALTER TABLE concord.replicated_table ADD COLUMN IF NOT EXISTS private jsonb NOT NULL DEFAULT '{}'",
    # The newest stamp (µs) of a living row's version that was forgotten here; NULL: every version is remembered.
    "ALTER TABLE concord.replicated_table ADD COLUMN IF NOT EXISTS forgotten bigint",
    "ALTER TABLE concord.conflict ADD COLUMN IF NOT EXISTS withheld jsonb NOT NULL DEFAULT '{}'",
    """
CREATE TABLE IF NOT EXISTS concord.overturn (
  conflict text PRIMARY KEY,
  person text NOT NULL,
  version jsonb NOT NULL,
  although_changed boolean NOT NULL,
  overturned_at timestamptz NOT NULL DEFAULT now())""",
    *private_columns.STATEMENTS,
    *retention.STATEMENTS,
    "CREATE INDEX IF NOT EXISTS conflict_transmission ON concord.conflict (transmission)",
    "CREATE INDEX IF NOT EXISTS conflict_decided_at ON concord.conflict (decided_at)",
    "CREATE INDEX IF NOT EXISTS conflict_loser ON concord.conflict ((loser_version ->> 'changed_at'))",
]

_REFUSE_TRUNCATE = """
CREATE OR REPLACE FUNCTION concord.refuse_truncate() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'table %.% is replicated by Concord: TRUNCATE would not reach the other sites',
                  TG_TABLE_SCHEMA, TG_TABLE_NAME
    USING HINT = 'Use DELETE, or take the table out of the replication set first.';
END $$"""

#: The copy is the source's: an edit of it would be undone by a refresh, without a word and without a trace (T10).
_REFUSE_SNAPSHOT_EDIT = """
CREATE OR REPLACE FUNCTION concord.refuse_snapshot_edit() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'table %.% is kept by Concord as the snapshot %, and is read-only',
                  TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0]
    USING HINT = 'Change the rows at the snapshot''s source.';
END $$"""


def statements(site: str) -> list[str]:
    """Idempotent statements that make, or bring up to date, everything in the schemas that is not about one table."""
    return [
        f"REVOKE ALL ON SCHEMA {SCHEMA}, {STAGING} FROM PUBLIC",
        *_VECTOR_FUNCTIONS,
        *_TABLES,
        _REFUSE_TRUNCATE,
        _REFUSE_SNAPSHOT_EDIT,
        f"""
INSERT INTO concord.site (name, incarnation, identity, format)
SELECT {literal(site)}, 1, ({IDENTITY}), {FORMAT}
ON CONFLICT (only_row) DO UPDATE SET format = excluded.format WHERE site.format < excluded.format""",
    ]


def removal() -> list[str]:
    """Statements that take away everything that is not about one table."""
    return [f"DROP SCHEMA IF EXISTS {STAGING} CASCADE", f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"]
