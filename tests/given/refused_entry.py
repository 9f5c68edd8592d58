"""The entry at which a replication stops, by its error."""

from concord.messages.errors import ConcordError


def stopped_at(error: ConcordError) -> int:
    """The number that it names."""
    return int(error.message.split("entry ")[1].split(",")[0])
