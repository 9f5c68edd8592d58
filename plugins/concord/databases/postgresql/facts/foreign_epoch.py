"""An epoch at a site that no run has taken: epochs are milliseconds of the controller's clock (`repository.lease`).

Whoever may write Concord's tables at a site can store any number there. A run would take it for a newer run, for ever.
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.messages.errors import ClockSkew

#: Milliseconds that a newer run's epoch may be ahead of the site's clock, and of this run's epoch.
ALLOWED = 24 * 3_600_000


def refuse(connection: Connection, table: str, column: str, name: str, epoch: int, site: str) -> None:
    """Raises ClockSkew where the epoch stored under this name is further ahead than that."""
    this = f"{column} = {literal(name)}"
    clock = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    found = rows(
        connection,
        f"SELECT epoch FROM concord.{table} WHERE {this} AND epoch > greatest({clock}, {epoch}) + {ALLOWED}",
    )
    if found:
        raise ClockSkew(
            f"{site}: concord.{table} holds the epoch {found[0][0]} for {name}, which lies more than a day ahead of the"
            f" clock there and of this run's; no run has taken it. Set it back there: UPDATE concord.{table} SET epoch"
            f" = 0 WHERE {this}"
        )
