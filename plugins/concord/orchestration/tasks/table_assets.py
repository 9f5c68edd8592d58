"""One Airflow asset for each replicated table at each site: a link that changed the table there updates it.

The asset is `Asset("concord://<site>/<table>")`, for any DAG to be scheduled on. A link knows only at its end which
tables it changed. So its task has an alias as its outlet, and adds the assets to it.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias, Context

from concord.jobs.link import Direction, TransmissionReport, link_name


def table_asset(site: str, table: str) -> Asset:
    """The schedule of a DAG that wants to know of changes to `table` at `site`."""
    return Asset(f"concord://{quote(site)}/{quote(table)}")


def changed_tables(synchronization: str, direction: Direction) -> AssetAlias:
    """The outlet of a link's task."""
    return AssetAlias(f"concord changed by {link_name(synchronization, direction)}")


def announce(context: Context, report: TransmissionReport) -> None:
    """Update the assets of the tables of which the link wrote rows at its target; a plan writes none."""
    outlet = context["outlet_events"][changed_tables(report.synchronization, report.direction)]
    for table in () if report.plan_only else report.tables:
        if table.applied:
            outlet.add(table_asset(report.target, table.table), _facts(report, table.applied))


def _facts(report: TransmissionReport, rows: int) -> dict[str, Any]:
    """A consumer's facts in the event: no row."""
    return {"rows": rows, "source": report.source, "transmission": report.transmission}
