"""The calls as one more table of a replication: published beside the others, and staged with their operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concord.databases.postgresql.calls import call_objects
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.log.published import Kind, Published, PublishedTable
from concord.jobs.replication import CALLS
from concord.messages.errors import NotProvisioned
from concord.tables.replication_set import TableName


def with_calls(
    site: str,
    of_rows: tuple[PublishedTable, ...],
    procedures: Sequence[TableName],
    tables: Mapping[TableName, Table],
) -> Published:
    """All that travels of one replication. Raises NotProvisioned."""
    if not procedures:
        return Published(of_rows)
    table = tables.get(call_objects.TABLE)
    if table is None:
        raise NotProvisioned(
            f"{site}: {call_objects.TABLE} is missing, which replicated calls need; run `provision`"
        )
    calls = PublishedTable(CALLS, table, table.primary_key, kind=Kind.CALLS)
    return Published((*of_rows, calls), carried=tuple(procedures))
