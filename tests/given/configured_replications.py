"""Configurations with replications of the table `bookings`."""

from tests.configuration.examples import spoiled

BASE = spoiled(
    "  london: {connection: london}", "  london: {connection: london, log_reader: london_log}"
).replace(
    "synchronizations:",
    "  bookings:\n    tables:\n      - table: public.bookings\n        at: {capetown: b.bookings}\n\nsynchronizations:",
)
#: Both sites have a reader of their logs.
BOTH = BASE.replace("connection: capetown", "connection: capetown\n    log_reader: cape_log", 1)
BOOKINGS = {"replication_set": "bookings", "publisher": "london", "subscriber": "capetown"}
BACK = {"replication_set": "bookings", "publisher": "capetown", "subscriber": "london"}
COPY = {"kind": "non_incremental", "source": "capetown", "target": "london", "from": "b.bookings"}


def section(name: str, parts: dict[str, dict[str, str]]) -> str:
    """A section of the file, each part in one line."""
    lines = [f"  {key}: {{{', '.join(f'{k}: {v}' for k, v in each.items())}}}" for key, each in parts.items()]
    return f"{name}:\n" + "\n".join(lines) + "\n"


def written(**replications: dict[str, str]) -> str:
    """The whole file."""
    return BASE + section("replications", replications)
