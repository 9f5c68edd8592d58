"""`python -m concord conflicts`: what lost, to what and why; and how it comes back."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from concord.configuration.configuration import Configuration
from concord.jobs.ledger import Entry, Image, dot, kept
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks.overturning import overturn
from concord.repository import ledger
from concord.terminal.shown import Columns, say, show
from concord.terminal.what_if import what_if
from concord.values.moment import moment

_WHEN = "%Y-%m-%d %H:%M:%S"


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; the exit status. Raises a ConcordError."""
    return _ACTIONS[asked.action](asked, configuration)


def _list(asked: argparse.Namespace, _: Configuration) -> int:
    engine = repository()
    wanted = ledger.Chosen(asked.synchronization, asked.table, asked.type, asked.since, asked.until)
    listed = list(ledger.entries(engine, wanted, asked.limit))
    show_entries("Conflicts, newest first", listed)
    if (more := ledger.count(engine, wanted) - len(listed)) > 0:
        say(f"and {more} more; choose by --table, --type, --since, or raise --limit")
    return 0


def show_entries(title: str, entries: Iterable[Entry]) -> None:
    """A line for each: what met, which site won, which one lost, and by which rule."""
    columns = ("conflict", "decided_at", "table", "key", "type", "won", "lost", "resolver", "overturned_by")
    headings = {"decided_at": "decided (UTC)"}
    show("conflicts", title, Columns(columns, headings), map(_line, entries))


def _line(entry: Entry) -> tuple[object, ...]:
    what = (entry.short_id, entry.decided_at, entry.table_name, _parts(entry), entry.conflict_type)
    return (*what, entry.winner_site, entry.loser_site, entry.resolver, entry.overturned_by)


def _show(asked: argparse.Namespace, _: Configuration) -> int:
    engine = repository()
    entry = ledger.find(engine, asked.conflict)
    facts = _facts(entry, ledger.run_of(engine, entry))
    show("facts", f"Conflict {entry.id}", Columns(("what", "value"), prose=("value",)), facts)
    sides = {"won": f"won: {entry.winner_site}", "lost": f"lost: {entry.loser_site}"}
    show("rows", "Rows", Columns(("column", *sides, "differs"), sides), _columns(entry))
    return 0


def _facts(entry: Entry, run: str | None) -> Iterator[tuple[str, str]]:
    yield "synchronization", entry.synchronization
    yield "table and key", f"{entry.table_name} {_key(entry)}"
    yield "type", entry.conflict_type
    yield "decided", f"{entry.decided_at:{_WHEN}} UTC at {entry.site}, by {entry.link}"
    yield "transmission", entry.transmission + (f" of the run {run}" if run else "")
    yield "resolver", f"{entry.resolver}: {entry.reason}"
    for side, version in (("won", entry.winner_version), ("lost", entry.loser_version)):
        yield side, _version(version) if kept(version) else "its version was not kept"
    if entry.overturned_at is not None:
        version = entry.overturned_version or {}
        came_back = f", as {_dot(*dot(version))}" if kept(version) else ""
        yield "overturned", f"{entry.overturned_at:{_WHEN}} UTC by {entry.overturned_by}{came_back}"


def _version(version: Mapping[str, Any]) -> str:
    vector = "; ".join(
        _dot(origin, int(at), int(derived)) for origin, (at, derived) in version["vector"].items()
    )
    return f"{_dot(*dot(version))}; has seen {vector or 'nothing'}"


def _dot(origin: str, changed_at: int, derived: int) -> str:
    """`a3f1 2026-11-29 10:15:00.123456 UTC`: the site that made the version, and when."""
    return f"{origin} {moment(changed_at):{_WHEN}.%f} UTC" + (f", derived {derived}" if derived else "")


def _columns(entry: Entry) -> Iterator[tuple[object, ...]]:
    """Every column of both rows; a star where they differ."""
    won, lost = entry.winner_row, entry.loser_row
    withheld = (entry.withheld or {}).get("columns", {})
    for name in sorted({*(won or {}), *(lost or {}), *withheld}):
        ours, theirs = _value(won, name), _value(lost, name)
        yield name, ours, theirs, withheld.get(name) or ("*" if ours != theirs else "")


def _value(row: Image | None, name: str) -> str:
    if row is None:
        return "(deleted)"
    value = row.get(name, "(dropped)")
    return "NULL" if value is None else value


def _key(entry: Entry) -> str:
    return ", ".join(_parts(entry))


def _parts(entry: Entry) -> list[str]:
    return ["(dropped)" if part is None else part for part in entry.key]


def _overturn(asked: argparse.Namespace, configuration: Configuration) -> int:
    entry, _ = overturn(
        repository(),
        configuration,
        asked.conflict,
        getpass.getuser(),
        although_changed=asked.even_if_changed,
    )
    what = "deleted again" if entry.loser_row is None else "back"
    say(
        f"{entry.short_id}: {entry.table_name} {_key(entry)} is {what} at {entry.site} as {entry.loser_site} had it;"
        f" every site follows with its next run."
    )
    return 0


_ACTIONS: Mapping[str, Callable[[argparse.Namespace, Configuration], int]] = {
    "list": _list,
    "show": _show,
    "overturn": _overturn,
    "what-if": what_if,
}
