"""A valid configuration, and how to spoil it."""

VALID = """\
sites:
  london: {connection: london}
  capetown:
    connection: capetown
    max_clock_skew: 60 s
    readers: 2

replication_sets:
  flight_operations:
    tables:
      - table: public.flights
        at: {capetown: ops.flights}
      - table: public.airlines
        key: [carrier]

synchronizations:
  london_capetown:
    replication_set: flight_operations
    source: london
    target: capetown
    schedule: "*/5 * * * *"
    resolvers: [latest_timestamp]
    tombstone_retention: 14 days
"""


def spoiled(old: str, new: str) -> str:
    """The valid configuration with one piece replaced."""
    assert VALID.count(old) == 1, f"{old!r} must occur once in the valid configuration"
    return VALID.replace(old, new)
