"""`python -m concord approve`: a person lets pass, once, what the brakes hold; and what status shows of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import pendulum
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.jobs.replication import configured_name
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import held_links
from concord.repository import holds
from concord.terminal.shown import Ago, problem, show

_COLUMNS = ("synchronization", "link", "table", "held", "rows", "of", "since", "approved")


def approve(asked: argparse.Namespace, configuration: Configuration, who: str) -> int:
    """Show what is approved, and up to how many rows; 1 where nothing is held."""
    name = asked.synchronization
    held = held_links.name_of_holds(configuration, name)
    approved = holds.approve(repository(), held, who, pendulum.now("UTC"))
    rows = [
        (_ends(configuration, each), *_seen(each), each.approved_up_to, each.approved_by) for each in approved
    ]
    columns = ("link", "table", "held", "rows", "of", "approved_up_to", "by")
    show("approved", f"{name}: the next run lets pass, once", columns, rows, if_any=True)
    if not rows:
        problem(f"{name}: nothing is held")
    return 0 if rows else 1


def show_holds(engine: Engine, configuration: Configuration) -> list[str]:
    """The holds that wait for a person; nothing where nothing does. Returns the names of those that nobody has
    approved."""
    found = [each for each in holds.waiting(engine) if held_links.configured(configuration, each)]
    title = "Held by the brakes: python -m concord approve"
    show("holds", title, _COLUMNS, _lines(configuration, found), if_any=True)
    return [each.synchronization for each in found if each.approved_at is None]


def _lines(configuration: Configuration, found: Iterable[holds.Waiting]) -> list[tuple[object, ...]]:
    return [
        (
            configured_name(each.synchronization),
            _ends(configuration, each),
            *_seen(each),
            Ago(each.held_at),
            f"up to {each.approved_up_to} by {each.approved_by}" if each.approved_at else None,
        )
        for each in found
    ]


def _seen(each: holds.Waiting) -> tuple[object, ...]:
    return each.hold.table, each.hold.kind, each.hold.count, each.hold.rows


def _ends(configuration: Configuration, each: holds.Waiting) -> str:
    return " → ".join(held_links.ends(configuration, each))
