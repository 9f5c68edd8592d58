"""The names of what is Concord's own at a site, its format, and the difference between databases."""

SCHEMA = "concord"
STAGING = "concord_staging"
SCHEMAS = (SCHEMA, STAGING)

#: Of the role that owns these schemas and all in them but staged rows, which are the applier's (`sites.owner`).
OWNER_PREFIX = "concord_owner_of_"

#: Of a site whose log is read: it brings the keys of its tables alone. No replication set's publication can have this
#: name (`log.publication`).
PUBLICATION = "concordcapture"

#: Raised when these objects change; `provision` brings an older site up to it.
FORMAT = 28

#: The parts that make a database this very one: system identifier, timeline, database (F17, F66).
IDENTITY = """
SELECT (SELECT system_identifier FROM pg_control_system())::text
       || '/' || (SELECT timeline_id FROM pg_control_checkpoint())::text
       || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())::text"""


def capture_slot(database: int) -> str:
    """Slots belong to a whole server, which may hold several sites: named after the database's oid. None of a
    replication begins so (`log.slot`)."""
    return f"concordcapture_{database}"
