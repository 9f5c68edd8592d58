"""`concord.row_version`: one version of a row as a UUID, for people and for tools that compare versions (S3-10)."""

from __future__ import annotations

#: Two sites show the same: it is made of the version itself, and of nothing that differs between them. Marked as a UUID
#: of one's own making (version 8).
_UUID = (
    "overlay(overlay(encode(sha256(convert_to(format(''%%s/%%s/%%s'', s.origin, s.changed_at, s.derived), ''UTF8'')),"
    " ''hex'') PLACING ''8'' FROM 13) PLACING ''8'' FROM 17)"
)

STATEMENTS = [
    # With the rights of whoever asks. A value is compared as the key's type reads it: no cast of somebody's is called.
    f"""
CREATE OR REPLACE FUNCTION concord.row_version(table_name text, VARIADIC key text[]) RETURNS uuid LANGUAGE plpgsql
STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_table text; columns bigint; at_key text; made uuid;
BEGIN
  SELECT format('concord.%I', r.shadow), jsonb_array_length(r.key) INTO of_table, columns
    FROM concord.replicated_table r WHERE r.name = table_name;
  IF of_table IS NULL OR columns <> cardinality(key) THEN
    RAISE EXCEPTION 'no table % with a key of % columns is replicated here', table_name, cardinality(key);
  END IF;
  SELECT string_agg(format('s.%I = %L', a.attname, key[a.attnum]), ' AND ') INTO at_key
    FROM pg_attribute a WHERE a.attrelid = of_table::regclass AND a.attnum BETWEEN 1 AND columns;
  EXECUTE format('SELECT left({_UUID}, 32)::uuid FROM %s s WHERE %s', of_table, at_key) INTO made;
  RETURN made;
END $$""",
]
