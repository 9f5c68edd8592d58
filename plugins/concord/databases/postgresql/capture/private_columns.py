"""The site itself takes private values out, before a row of the conflict ledger is stored.

A trigger does it, so that no statement that writes the ledger can forget it. A hash is an HMAC-SHA-256 under a
secret that the site made by itself. Only the owner of Concord's objects can read the secret: a plain hash of a
short value could be guessed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from concord.configuration.field import did_you_mean
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts.catalogue import Table
from concord.tables.privacy import Treatment, at_site
from concord.tables.replication_set import ReplicatedTable

TRIGGER = "zz_concord_withhold"

#: SHA-256's block; the secret is shorter, and padded with zeros (RFC 2104).
_BLOCK = 64


def _pad(byte: int) -> str:
    exclusive_or = f"lpad(to_hex(get_byte(k.secret, i) # {byte}), 2, '0')"
    return f"(SELECT decode(string_agg({exclusive_or}, '' ORDER BY i), 'hex') FROM generate_series(0, {_BLOCK - 1}) i)"


_TABLE = """
CREATE TABLE IF NOT EXISTS concord.secret (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  inner_pad bytea NOT NULL,
  outer_pad bytea NOT NULL)"""

#: Two random UUIDs are 244 random bits from the server's own strong source.
_SECRET = f"""
INSERT INTO concord.secret (inner_pad, outer_pad)
SELECT {_pad(0x36)}, {_pad(0x5C)}
  FROM (SELECT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
               || decode(repeat('00', {_BLOCK - 32}), 'hex') AS secret OFFSET 0) k
 WHERE NOT EXISTS (SELECT 1 FROM concord.secret)"""

#: Nobody but the owner may call these: whoever can hash can guess.
_FUNCTIONS = {
    "keyed_hash(text)": """
CREATE OR REPLACE FUNCTION concord.keyed_hash(value text) RETURNS text LANGUAGE sql STABLE STRICT
RETURN (SELECT encode(sha256(s.outer_pad || sha256(s.inner_pad || convert_to(value, 'UTF8'))), 'hex')
          FROM concord.secret s)""",
    # An image of which everything is dropped is still an image: a NULL would say that the row was deleted.
    "without_private(text, jsonb, jsonb)": """
CREATE OR REPLACE FUNCTION concord.without_private(of_table text, image jsonb, treatments jsonb) RETURNS jsonb
LANGUAGE sql STABLE STRICT
RETURN (SELECT coalesce(jsonb_object_agg(e.key,
                 CASE WHEN treatments ->> e.key = 'hashed' AND e.value IS NOT NULL
                      THEN concord.keyed_hash(jsonb_build_array(of_table, e.key, e.value)::text)
                      ELSE e.value END), '{}')
          FROM jsonb_each_text(image) e WHERE treatments ->> e.key IS DISTINCT FROM 'dropped')""",
    # The id is a hash of the key, among what else stands in the entry: it would tell a guess from a wrong one.
    "withhold_private()": """
CREATE OR REPLACE FUNCTION concord.withhold_private() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  private jsonb;
  own jsonb;
  others jsonb;
BEGIN
  SELECT r.private, coalesce(r.private -> 'columns', '{}') INTO STRICT private, own
    FROM concord.replicated_table r WHERE r.name = NEW.table_name;
  others := own;
  -- A parent loses to a child: whose row that is, the entry does not say.
  IF NEW.type = 'foreign_key' THEN
    SELECT coalesce(jsonb_object_agg(c.name, c.strictest), '{}') INTO others
      FROM (SELECT e.key AS name, min(e.value) AS strictest  -- dropped comes before hashed
              FROM concord.replicated_table r CROSS JOIN jsonb_each_text(r.private -> 'columns') e GROUP BY 1) c;
  END IF;
  NEW.winner_row := concord.without_private(NEW.table_name, NEW.winner_row, others);
  NEW.loser_row := concord.without_private(NEW.table_name, NEW.loser_row, own);
  IF private ? 'key' THEN
    NEW.id := concord.keyed_hash(jsonb_build_array(NEW.table_name, NEW.id)::text);
    NEW.key := (SELECT jsonb_agg(CASE private -> 'key' ->> (k.place - 1)::int
                         WHEN 'hashed' THEN concord.keyed_hash(jsonb_build_array(NEW.table_name, k.place, k.part)::text)
                         WHEN 'stored' THEN k.part END ORDER BY k.place)
                  FROM jsonb_array_elements_text(NEW.key) WITH ORDINALITY k (part, place));
  END IF;
  NEW.withheld := private;
  RETURN NEW;
END $$""",
}

#: Every site has this, with private columns or without.
STATEMENTS = [
    _TABLE,
    # A login that may read Concord's tables sees no row of this one, but for its owner's. A REVOKE would hit the
    # owner, too, where one login has all roles.
    "ALTER TABLE concord.secret ENABLE ROW LEVEL SECURITY",
    _SECRET,
    *_FUNCTIONS.values(),
    *(f"REVOKE ALL ON FUNCTION concord.{signature} FROM PUBLIC" for signature in _FUNCTIONS),
]

#: Condition: the trigger that takes out the private columns of the registered tables is there, and fires for everybody.
EFFECTIVE = f"""
EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = to_regclass('concord.conflict')
           AND t.tgname = {literal(TRIGGER)} AND t.tgenabled = 'A')"""


def private_at(wanted: ReplicatedTable, site: str, shadow: Shadow) -> dict[str, Any]:
    """As a site keeps it: its own columns, and the parts of the canonical key; empty where nothing is private."""
    treatments = {name: each for name, each in wanted.private.items() if each is not Treatment.STORED}
    if not treatments:
        return {}
    manipulation = wanted.manipulation_at(site)
    key = [
        treatments.get(name, Treatment.STORED) for name in sorted(manipulation.canonical_names(shadow.key))
    ]
    private: dict[str, Any] = {"columns": dict(sorted(at_site(treatments, manipulation).items()))}
    return private | ({"key": key} if set(key) != {Treatment.STORED} else {})


def statements(
    private: Mapping[str, Mapping[str, Any]], left: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Make a site heed the private columns of its tables, by their names in the replication set.

    `left` are tables that are in no synchronization any more: rows of them may still wait, and be let go into the
    ledger.
    """
    for name, treatments in private.items():
        kept = f"{literal(json.dumps(treatments))}::jsonb"
        yield (
            f"UPDATE concord.replicated_table SET private = {kept}"
            f" WHERE name = {literal(name)} AND private IS DISTINCT FROM {kept}"
        )
    yield from _trigger(name for name, treatments in {**left, **private}.items() if treatments)


def _trigger(tables: Iterable[str]) -> Iterator[str]:
    """Where no table has private columns, the ledger costs no call of a function."""
    listed = ", ".join(map(literal, sorted(tables)))
    private = f"NEW.table_name IN ({listed}) OR NEW.type = 'foreign_key'" if listed else "false"
    yield (
        f"CREATE OR REPLACE TRIGGER {TRIGGER} BEFORE INSERT ON concord.conflict FOR EACH ROW"
        f" WHEN ({private}) EXECUTE FUNCTION concord.withhold_private()"
    )
    yield f"ALTER TABLE concord.conflict ENABLE ALWAYS TRIGGER {TRIGGER}"  # links write as replicas do


def problems(wanted: ReplicatedTable, site: str, table: Table, shadow: Shadow) -> Iterator[str]:
    """Columns that are to be private and are not there: a slip of the pen would show what must not be seen."""
    known = {column.name for column in table.columns}
    for name in sorted(private_at(wanted, site, shadow).get("columns", {}).keys() - known):
        yield (
            f"{site}: {wanted.at_site(site)} has no column {name}, which is to be private; {did_you_mean(name, known)}"
        )
