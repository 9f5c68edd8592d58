"""`python -m concord waiting`: rows that were held or refused, both sides of each, and what a person says."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Callable, Mapping

from concord.configuration.configuration import Configuration
from concord.jobs.waiting import Choice, Image, WaitingRow, columns_given
from concord.messages.errors import ParametersRefused
from concord.orchestration.tasks import waiting_rows
from concord.terminal.shown import Columns, say, show

_COLUMNS = Columns(
    ("id", "waits_at", "link", "table", "key", "kind", "source_has", "target_has", "reason"),
    prose=("source_has", "target_has", "reason"),
)


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; the exit status. Raises a ConcordError."""
    return _ACTIONS[asked.action](asked, configuration)


def _list(asked: argparse.Namespace, configuration: Configuration) -> int:
    found = waiting_rows.listed(configuration, asked.synchronization, asked.limit)
    show("waiting", "Rows that wait", _COLUMNS, map(_line, found))
    lines = [
        (
            each.id,
            each.site,
            each.link,
            each.table_name,
            each.key,
            each.kind,
            each.row_image,
            None,
            each.reason,
        )
        for each in waiting_rows.unconfigured(configuration)
    ]
    title = "Rows that wait for links that have left the configuration"
    show("unconfigured", title, _COLUMNS, lines, if_any=True)
    return 0


def _line(row: WaitingRow) -> tuple[object, ...]:
    ours, theirs = row.incoming_row or {}, row.present_row or {}
    unlike = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    sides = (shown(row.incoming_row, unlike), shown(row.present_row, unlike))
    return (row.id, row.site, row.link, row.table_name, row.key, row.kind, *sides, row.reason)


def shown(image: Image | None, names: list[str]) -> str:
    """The columns that differ; or that there is no row."""
    return "(no row)" if image is None else _row({name: image.get(name) for name in names})


def _row(image: Image) -> str:
    return ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in image.items())


def _decide(asked: argparse.Namespace, configuration: Configuration) -> int:
    row = waiting_rows.decide(configuration, asked.waiting, _choice(asked), getpass.getuser())
    return _say(
        f"{row.table_name} {', '.join(row.key)}: decided at {row.site}; every site follows with its next run."
    )


def _choice(asked: argparse.Namespace) -> Choice:
    if asked.row is None:
        return str(asked.choice)
    try:
        given = columns_given(asked.row)
    except ValueError as error:
        raise ParametersRefused(f"--row is no JSON: {error}") from None
    if given is None:
        raise ParametersRefused('--row must be an object of columns, such as \'{"price": "9.50"}\'')
    return given


def _retry(asked: argparse.Namespace, configuration: Configuration) -> int:
    row = waiting_rows.retry(configuration, asked.waiting)
    return _say(f"{row.table_name} {', '.join(row.key)}: the next run tries it again.")


def _drop(asked: argparse.Namespace, configuration: Configuration) -> int:
    row = waiting_rows.drop(configuration, asked.waiting, getpass.getuser())
    return _say(f"{row.table_name} {', '.join(row.key)}: let go; the conflict log of {row.site} keeps it.")


def _say(sentence: str) -> int:
    say(sentence)
    return 0


_ACTIONS: Mapping[str, Callable[[argparse.Namespace, Configuration], int]] = {
    "list": _list,
    "decide": _decide,
    "retry": _retry,
    "drop": _drop,
}
