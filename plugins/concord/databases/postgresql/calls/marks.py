"""The marks of calls in the log: what stands between the two of one call is the call's own work, and stays there."""

from __future__ import annotations

from concord.databases.postgresql.log.pgoutput import Values
from concord.databases.postgresql.log.published import Kind, Published
from concord.messages.errors import EntryRefused


class Marks:
    """Of one replication's log. A call that it does not carry is as if there were no marks: its rows travel."""

    def __init__(self, published: Published) -> None:
        places = [place for place, each in enumerate(published.tables) if each.kind is Kind.CALLS]
        self._place = places[0] if places else None
        self._carried = {(each.schema_name.encode(), each.name.encode()) for each in published.carried}
        self._inside = False

    def passes_over(self, place: int, operation: bytes, new: Values | None) -> bool:
        """Is the operation the work of a call, or a mark that is no call of ours (S4-126)?"""
        if place != self._place:
            return self._inside
        if operation != b"I" or new is None:
            self._inside = False
            return True
        schema, name = ((value or b"")[4:] for value in new[1:3])
        self._inside = (schema, name) in self._carried
        return not self._inside

    def ended(self, number: int) -> None:
        """An entry ends. Raises EntryRefused where a call does not: its rows would be lost."""
        if self._inside:
            raise EntryRefused(f"entry {number}: a call begins in it and does not end; initialize again")
