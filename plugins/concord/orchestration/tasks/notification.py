"""An Airflow notifier that a connection names tells of many conflicts, and of what else people are to hear (S4-071,
S4-072).

The connection's extra holds the notifier's class by its dotted name, `notifier`, and its arguments; what they say may
be templates over `concord`. So addresses, channels and secrets stand in Airflow, and no code in the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import Any

from airflow.sdk import BaseNotifier, Context
from sqlalchemy import Engine

from concord.configuration.notify import NotifySettings
from concord.messages.errors import ConnectionRefused
from concord.messages.event_log import log_event, logger_named
from concord.messages.how_many import how_many
from concord.orchestration.surroundings.connections import airflow_connection
from concord.repository.status import TransmissionStatus, transmissions

logger = logger_named(__name__)


def notify_of_conflicts(
    engine: Engine, settings: NotifySettings, synchronization: str, run_id: str, context: Context
) -> bool:
    """Tell of the run's conflicts if there were too many; whether somebody was told.

    Never raises: the rows are where they belong, and the run is no failure because a message could not be sent.
    """
    facts = _facts(synchronization, transmissions(engine, run_id))
    if not settings.exceeded(facts["conflicts"], facts["acquired"]):
        return False
    return told(settings.through, "conflicts", facts, context)


def told(through: str, of: str, facts: Mapping[str, Any], context: Context) -> bool:
    """Send the facts through the connection's notifier; False, and a line in the log, where that could not be."""
    try:
        notifier = _notifier(through)
        notifier({**context, "concord": facts})
    except Exception as error:  # noqa: BLE001 - a notifier is somebody else's code
        said = error.message if isinstance(error, ConnectionRefused) else type(error).__name__
        log_event(logger, f"nobody could be told of {of}", through=through, why=said)
        return False
    log_event(logger, f"told of {of}", through=through, **facts)
    return True


def _facts(synchronization: str, sent: Sequence[TransmissionStatus]) -> dict[str, Any]:
    """The words of a message: counts and names, no row."""
    newest = {each.direction: each for each in sent if not each.plan_only and each.error_code is None}
    tables: dict[str, int] = {}
    for each in newest.values():
        for table in each.tables:
            tables[table["table"]] = tables.get(table["table"], 0) + table["conflicts"]
    conflicts = sum(each.conflicts for each in newest.values())
    facts = {
        "synchronization": synchronization,
        "conflicts": conflicts,
        "acquired": sum(each.acquired for each in newest.values()),
        "tables": {name: count for name, count in sorted(tables.items()) if count},
    }
    return {**facts, "message": _message(facts)}


def _message(facts: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{count} in {name}" for name, count in facts["tables"].items())
    return (
        f"{facts['synchronization']}: {how_many(facts['conflicts'], 'conflict')} among"
        f" {how_many(facts['acquired'], 'row')} of one run"
        f" ({listed}). python -m concord conflicts list --synchronization {facts['synchronization']}"
    )


def _notifier(connection_id: str) -> BaseNotifier:
    """The notifier that the connection's extra describes. Raises ConnectionRefused when it describes none."""
    arguments = dict(airflow_connection(connection_id).extra_dejson)
    try:
        kind = resolve_name(str(arguments.pop("notifier", "")))
    except (ImportError, AttributeError, ValueError):
        kind = None
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise ConnectionRefused(
            f'connection {connection_id!r}: the "notifier" of its extra is not the dotted name of an Airflow notifier'
            " that is installed here, such as airflow.providers.smtp.notifications.smtp.SmtpNotifier"
        )
    return kind(**arguments)
