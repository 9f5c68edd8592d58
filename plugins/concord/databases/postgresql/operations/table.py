"""The tables of captured operations, and the function that fills them in each user's transaction (S0-03).

An operation draws its place from one sequence. An entry is a transaction that was found committed, and gets its number
then. So a subscriber's level is one number here as well (S4-113).
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.session import PINNED

#: The function runs in the user's session, whose settings say how values read.
_SETTINGS = "".join(
    f" SET {name} = {literal(PINNED[name])}"
    for name in ("TimeZone", "DateStyle", "IntervalStyle", "bytea_output", "extra_float_digits", "xmloption")
)

STATEMENTS = [
    # A row is kept as the text of its record, which the functions of its types write exactly.
    """
CREATE TABLE IF NOT EXISTS concord.operation (
  place bigint GENERATED ALWAYS AS IDENTITY,
  transaction xid8 NOT NULL,
  relation oid NOT NULL,
  operation "char" NOT NULL,
  structure text NOT NULL,
  before text,
  after text,
  depth integer NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  bytes integer NOT NULL
    GENERATED ALWAYS AS (64 + coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)) STORED)""",
    "CREATE INDEX IF NOT EXISTS operation_transaction ON concord.operation (transaction)",
    # The places of its operations, and its place among the numbers: `since` is the entry before it.
    """
CREATE TABLE IF NOT EXISTS concord.entry (
  number bigint PRIMARY KEY,
  since bigint NOT NULL,
  transaction xid8 NOT NULL,
  first_place bigint NOT NULL,
  last_place bigint NOT NULL,
  at timestamptz NOT NULL)""",
    # Whatever was committed in the snapshot has its number.
    """
CREATE TABLE IF NOT EXISTS concord.last_entry (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  number bigint NOT NULL,
  snapshot pg_snapshot NOT NULL)""",
    "INSERT INTO concord.last_entry (number, snapshot) SELECT 0, pg_current_snapshot() ON CONFLICT DO NOTHING",
    # Each replication's tables, and the level that its subscriber has on disk. A site that was brought back counts its
    # transactions anew.
    """
CREATE TABLE IF NOT EXISTS concord.kept_operations (
  replication text PRIMARY KEY,
  level bigint NOT NULL,
  relations oid[] NOT NULL,
  incarnation integer NOT NULL)""",
    # SECURITY DEFINER: application users need no right on the operations, and get none. A cast of a row is the table
    # owner's to define, and would run with Concord's rights; `format` asks each type's own function.
    f"""
CREATE OR REPLACE FUNCTION concord.keep_operation() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off{_SETTINGS} AS $$
BEGIN
  INSERT INTO concord.operation (transaction, relation, operation, structure, depth, before, after)
  VALUES (pg_current_xact_id(), TG_RELID, substr(TG_OP, 1, 1)::"char", TG_ARGV[0], pg_trigger_depth(),
          CASE WHEN TG_OP IN ('UPDATE', 'DELETE') THEN format('%s', OLD) END,
          CASE WHEN TG_OP IN ('UPDATE', 'INSERT') THEN format('%s', NEW) END);
  RETURN NULL;
END $$""",
    "REVOKE ALL ON FUNCTION concord.keep_operation() FROM PUBLIC",
]
