"""The names of Concord's own schemas at a site, their format, and the difference between databases."""

SCHEMA = "concord"
STAGING = "concord_staging"

#: Raised when these objects change; `provision` brings an older site up to it.
FORMAT = 23

#: The parts that make a database this very one: system identifier, timeline, database (F17, F66).
IDENTITY = """
SELECT (SELECT system_identifier FROM pg_control_system())::text
       || '/' || (SELECT timeline_id FROM pg_control_checkpoint())::text
       || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())::text"""
