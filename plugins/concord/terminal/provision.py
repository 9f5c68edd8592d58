"""`python -m concord provision`: make the sites ready, check them, print the statements, or take Concord off."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from concord.configuration import file
from concord.configuration.configuration import Configuration, config_path
from concord.configuration.fewer_tables import as_yaml, fewer_tables
from concord.databases import provisioning
from concord.databases.provisioning import Accepted, Installation
from concord.messages.grouped import listed
from concord.messages.inert import inert_lines
from concord.orchestration.tasks import jobs
from concord.terminal.pace_shown import shown
from concord.terminal.printed_sql import print_sql, write_sql
from concord.terminal.shown import is_document, notice, problem, say, write


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
    accepted = provisioning.accepted(installations) if asked.skip_refused else None
    if accepted is not None:
        _show_problems(installations, [each.text for each in accepted.refusals])
        installations = accepted.installations
    with shown() as tell:
        unproven = provisioning.provision(installations, tell)
    _notify(installations, [*unproven, *provisioning.notices(installations)])
    say(f"Provisioned: {names}.")
    if accepted is not None:
        _show_left_out(accepted, configuration)
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


def _show_left_out(accepted: Accepted, configuration: Configuration) -> None:
    """Until they are out of the configuration, runs and initializations meet tables that are not provisioned."""
    path = config_path()
    lists = fewer_tables(file.read(path).value, configuration, accepted.tables)
    left_out = [*accepted.tables, *(f"the snapshot {name}" for name in accepted.snapshots)]
    say(
        f"Left out: {listed(left_out)}. Take them out of {path} before `initialize`: until then it is refused, and"
        " runs carry the other tables and fail for these."
        if left_out
        else "Nothing was refused.",
        left_out={"tables": accepted.tables, "snapshots": accepted.snapshots},
        tables=lists,
    )
    if lists and not is_document():
        write(f"The lists of tables without them:\n\n{inert_lines(as_yaml(lists))}")


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
