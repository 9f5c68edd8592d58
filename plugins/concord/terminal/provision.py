"""`python -m concord provision`: make the sites ready, check them, print the statements, or take Concord off."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from concord.configuration.configuration import Configuration
from concord.databases import provisioning
from concord.databases.provisioning import Installation
from concord.orchestration.tasks import jobs
from concord.terminal.pace_shown import shown
from concord.terminal.printed_sql import print_sql, write_sql
from concord.terminal.shown import is_document, notice, problem, say


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; the exit status. Raises a ConcordError."""
    installations = jobs.installations(configuration, asked.site)
    if asked.print_sql:
        return _print_sql(asked.print_sql, provisioning.sql(installations))
    if asked.check:
        return _check(installations)
    names = ", ".join(each.site for each in installations)
    if asked.remove:
        provisioning.remove(installations)
        say(f"Removed from {names}; the replicated tables, their rows and sequences are as they were.")
        return 0
    with shown() as tell:
        unproven = provisioning.provision(installations, tell)
    _notify(installations, [*unproven, *provisioning.notices(installations)])
    say(f"Provisioned: {names}.")
    return 0


def _check(installations: Sequence[Installation]) -> int:
    problems = provisioning.check(installations)
    _notify(installations, provisioning.notices(installations))
    _show_problems(installations, problems)
    if not problems:
        say("All sites are as they should be.")
    return 1 if problems else 0


def _notify(installations: Sequence[Installation], notices: Iterable[str]) -> None:
    for each in _lines(installations, notices):
        notice(each)


def _show_problems(installations: Sequence[Installation], problems: Iterable[str]) -> None:
    for each in _lines(installations, problems):
        problem(each)


def _lines(installations: Sequence[Installation], lines: Iterable[str]) -> Iterable[str]:
    """A document names every table; for people, lines that differ in the table alone are one."""
    return dict.fromkeys(lines) if is_document() else provisioning.grouped_lines(installations, lines)


def _print_sql(where: str, scripts: Iterable[tuple[str, str]]) -> int:
    """`-` is stdout, all else a directory."""
    if where != "-":
        made = write_sql(scripts, Path(where))
        say(f"Written: {', '.join(map(str, made))}. Each says in its first line who runs it: psql -f.")
    elif is_document():
        say("To be run at each site.", sql=dict(scripts))
    else:
        print_sql(scripts)
    return 0
