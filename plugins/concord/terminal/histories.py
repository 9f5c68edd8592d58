"""The histories of replications, for people: their size, and what they will need (S0-50)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect
from concord.jobs.replication import ReplicationDefinition, replication_name
from concord.messages.errors import ConcordError
from concord.orchestration.tasks.jobs import site_access
from concord.repository.costs import changes_a_day
from concord.terminal.shown import problem, show

_COLUMNS = (
    "replication",
    "table",
    "site",
    "versions",
    "bytes",
    "versions_a_day",
    "bytes_a_day",
    "days_kept",
    "bytes_at_the_end",
)
_DAY = timedelta(days=1)


def show_all(engine: Engine, configuration: Configuration) -> bool:
    """Each history, asked of its site; True when one did not answer."""
    rows, failed = list[tuple[object, ...]](), False
    for name in configuration.replications:
        definition = configuration.replication(name)
        try:
            rows += _rows(engine, configuration, definition)
        except ConcordError as error:
            failed = True
            problem(f"histories of {name}: {error.message}", error.code)
    show("histories", "Histories", _COLUMNS, rows, if_any=True)
    return failed


def _rows(
    engine: Engine, configuration: Configuration, definition: ReplicationDefinition
) -> Iterator[tuple[object, ...]]:
    if not definition.histories:
        return
    site = site_access(configuration, definition.subscriber)
    places = [table.at_site(site.name) for table, _ in definition.histories]
    kept = dict(zip(map(str, places), definition.histories, strict=True))
    for size in dialect(site.dialect).status.sizes(site, places):
        table, history = kept[size.table]
        a_day = changes_a_day(engine, replication_name(definition.name), table.name)
        yield (
            definition.name,
            size.table,
            site.name,
            size.rows,
            size.bytes,
            None if a_day is None else round(a_day),
            *_needs(size.rows, size.bytes, a_day, history.keep),
        )


def _needs(rows: int, size: int, a_day: float | None, keep: timedelta | None) -> tuple[object, ...]:
    """Bytes that a day adds; days for which they are kept; bytes once as many go as come. None: unknown, or no end."""
    days = None if keep is None else round(keep / _DAY, 1)
    if a_day is None or not rows:
        return (None, days, None)
    bytes_a_day = round(a_day * size / rows)
    return (bytes_a_day, days, None if days is None else round(bytes_a_day * days))
