"""The rights that provisioning grants, as the catalogue knows them."""

from tests.given.site import APPLIER, READER

TABLES = (
    "CREATE SCHEMA ops",
    "CREATE TYPE ops.mood AS ENUM ('glad', 'sad')",
    "CREATE TABLE ops.parent (id int PRIMARY KEY, mood ops.mood)",
    "CREATE TABLE ops.child (id int PRIMARY KEY, parent int REFERENCES ops.parent)",
    "INSERT INTO ops.parent SELECT n, 'glad' FROM generate_series(1, 9) n",
    "INSERT INTO ops.child VALUES (1, 1)",
)

#: The rights that provisioning grants, as the catalogue then knows them: (grantee, object) → privileges.
GRANTED = {
    (READER, "schema concord"): "USAGE",
    (READER, "schema ops"): "USAGE",
    **{
        (READER, f"table concord.{name}"): "SELECT"
        for name in (
            "conflict",
            "initialization",
            "late_index",
            "link_state",
            "replicated_table",
            "site",
            "snapshot",
            "waiting",
        )
    },
    (READER, "table concord.compensation"): "SELECT",
    **{(READER, f"table concord.{name}"): "SELECT" for name in ("applied", "captured_by", "log_capture")},
    (READER, "table concord.overturn"): "SELECT",
    (READER, "table concord.consumed"): "SELECT",
    (READER, "table concord.recorded_copy"): "SELECT",
    (READER, "table concord.replay"): "SELECT",
    (READER, "table concord.skipped"): "SELECT",
    (READER, "table concord.synchronization"): "SELECT",
    **{
        (READER, f"table concord.{name}"): "SELECT"
        for name in ("entry", "kept_operations", "last_entry", "operation")
    },
    (READER, 'table concord."ops.parent"'): "SELECT",
    (READER, 'table concord."ops.child"'): "SELECT",
    (READER, "table ops.parent"): "SELECT",
    (READER, "table ops.child"): "SELECT",
    (APPLIER, "schema concord"): "USAGE",
    (APPLIER, "schema concord_staging"): "CREATE USAGE",
    (APPLIER, "schema ops"): "USAGE",
    (APPLIER, "table concord.applied"): "DELETE INSERT SELECT",
    (APPLIER, "table concord.captured_by"): "SELECT",
    (APPLIER, "table concord.compensation"): "DELETE INSERT SELECT",
    (APPLIER, "table concord.conflict"): "INSERT SELECT",
    (APPLIER, "table concord.initialization"): "DELETE INSERT SELECT UPDATE",
    (APPLIER, "table concord.entry"): "DELETE INSERT SELECT",
    (APPLIER, "table concord.kept_operations"): "DELETE INSERT SELECT UPDATE",
    (APPLIER, "table concord.last_entry"): "SELECT UPDATE",
    (APPLIER, "table concord.consumed"): "DELETE INSERT SELECT",
    (APPLIER, "table concord.recorded_copy"): "DELETE INSERT SELECT",
    (APPLIER, "table concord.operation"): "DELETE",
    **{
        (APPLIER, f"table concord.operation({column})"): "SELECT"
        for column in ("at", "bytes", "place", "relation", "transaction")
    },
    (APPLIER, "table concord.late_index"): "SELECT",
    (APPLIER, "table concord.log_capture"): "SELECT UPDATE",
    (APPLIER, "table concord.waiting"): "DELETE INSERT SELECT UPDATE",
    (APPLIER, "table concord.link_state"): "INSERT SELECT UPDATE",
    (APPLIER, "table concord.overturn"): "INSERT SELECT",
    (APPLIER, "table concord.replay"): "INSERT SELECT UPDATE",
    (APPLIER, "table concord.replicated_table"): "SELECT",
    (APPLIER, "table concord.replicated_table(forgotten)"): "UPDATE",
    (APPLIER, "table concord.replicated_table(history_lost)"): "UPDATE",
    (APPLIER, "table concord.replicated_table(registered)"): "UPDATE",
    (APPLIER, "table concord.replicated_table(writers)"): "UPDATE",
    (APPLIER, "table concord.site"): "SELECT",
    (APPLIER, "table concord.site(acquired)"): "UPDATE",
    (APPLIER, "table concord.site(heartbeat)"): "UPDATE",
    (APPLIER, "table concord.site(stamp_floor)"): "UPDATE",
    (APPLIER, "table concord.skipped"): "INSERT SELECT",
    (APPLIER, "table concord.skipped(mended_at)"): "UPDATE",
    (APPLIER, "table concord.snapshot"): "SELECT",
    (APPLIER, "table concord.synchronization"): "INSERT SELECT UPDATE",
    (APPLIER, 'table concord."ops.parent"'): "DELETE INSERT SELECT UPDATE",
    (APPLIER, 'table concord."ops.child"'): "DELETE INSERT SELECT UPDATE",
    (APPLIER, "table ops.parent"): "DELETE INSERT SELECT UPDATE",
    (APPLIER, "table ops.child"): "DELETE INSERT SELECT UPDATE",
    **{
        (APPLIER, f"function concord.{name}"): "EXECUTE"
        for name in (
            "purge_conflicts(timestamp with time zone,integer)",
            "vector_includes(jsonb,jsonb)",
            "vector_unite(jsonb,jsonb)",
            "vector_newest(jsonb)",
        )
    },
    (READER, "database"): "CONNECT",
    (APPLIER, "database"): "CONNECT TEMPORARY",
    (APPLIER, "type ops.mood"): "USAGE",
    (APPLIER, "parameter deadlock_timeout"): "SET",
    (APPLIER, "parameter session_replication_role"): "SET",
}

RIGHTS = f"""
SELECT grantee::regrole::text, object, string_agg(privilege_type, ' ' ORDER BY privilege_type)
  FROM (SELECT 'schema ' || nspname AS object, (aclexplode(nspacl)).* FROM pg_namespace
        UNION ALL SELECT 'table ' || oid::regclass::text, (aclexplode(relacl)).* FROM pg_class
        UNION ALL SELECT 'table ' || attrelid::regclass::text || '(' || attname || ')', (aclexplode(attacl)).*
                    FROM pg_attribute
        UNION ALL SELECT 'function ' || oid::regprocedure::text, (aclexplode(proacl)).* FROM pg_proc
        UNION ALL SELECT 'type ' || format_type(oid, NULL), (aclexplode(typacl)).* FROM pg_type
        UNION ALL SELECT 'database', (aclexplode(datacl)).* FROM pg_database WHERE datname = current_database()
        UNION ALL SELECT 'parameter ' || parname, (aclexplode(paracl)).* FROM pg_parameter_acl) x
 WHERE grantee IN ('{READER}'::regrole, '{APPLIER}'::regrole) GROUP BY 1, 2"""
