"""The commands of `python -m concord`, and their arguments."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from concord.terminal import replication_arguments
from concord.terminal.arguments import add_output, command, duration

if TYPE_CHECKING:
    from concord.terminal.arguments import Commands

_SYNCHRONIZATION = "its name in the configuration"


_DIRECTION = "the link from source to target, the one back, or both"


def _moment(text: str) -> datetime:
    """ISO 8601; UTC where no offset is given."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parser() -> argparse.ArgumentParser:
    """For all commands, in the order in which people meet them."""
    made = argparse.ArgumentParser(
        prog="python -m concord", description="Keep copies of tables in agreement."
    )
    add_output(made, default=False)
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_prepare(commands)
    _add_provision(commands)
    _add_initialize(commands)
    _add_synchronize(commands)
    _add_plan(commands)
    _add_compare(commands)
    _add_conflicts(commands)
    _add_snapshot(commands)
    replication_arguments.add_replicate(commands)
    replication_arguments.add_entry(commands)
    replication_arguments.add_wait(commands)
    replication_arguments.add_cost(commands)
    _add_status(commands)
    approve = command(commands, "approve", help="let pass, once, what the brakes hold")
    approve.add_argument("synchronization", help=_SYNCHRONIZATION)
    _add_forget(commands)
    _add_tombstones(commands)
    _add_waiting(commands)
    _add_restamp(commands)
    command(commands, "config-schema", help="print the JSON schema of the configuration")
    command(commands, "check-config", help="read the configuration and name every mistake in it")
    return made


def _add_provision(commands: Commands) -> None:
    provision = command(commands, "provision", help="make the sites ready")
    provision.add_argument("--site", help="only this one")
    instead = provision.add_mutually_exclusive_group()
    instead.add_argument(
        "--print-sql",
        nargs="?",
        const="-",
        metavar="DIR",
        help="print the statements for a DBA, or write them into DIR/SITE.sql; run nothing",
    )
    instead.add_argument(
        "--check",
        action="store_true",
        help="say what would be refused, and what is missing or altered; write nothing",
    )
    instead.add_argument(
        "--skip-refused",
        action="store_true",
        help="provision the others where tables are refused; print the table lists without these",
    )
    instead.add_argument("--remove", action="store_true", help="take Concord off; tables and rows stay")


def _add_initialize(commands: Commands) -> None:
    initialize = command(
        commands, "initialize", help="give two sites their common history, and let their links start there"
    )
    initialize.add_argument("synchronization", help=_SYNCHRONIZATION)
    initialize.add_argument(
        "--how",
        choices=["auto", "equal", "load", "merge", "reinitialize"],
        default="auto",
        help="prove the sites equal, load the empty one, merge both, or bring one back; auto chooses by what is there",
    )
    initialize.add_argument(
        "--from", dest="named", metavar="SITE", help="whose rows hold where nothing decides"
    )
    initialize.add_argument("--table", action="append", dest="tables", help="only this one; may be repeated")
    initialize.add_argument(
        "--requested",
        action="store_true",
        help="reinitialize: only tables for which a conflict asked for it (publisher_wins_and_reinitialize)",
    )
    initialize.add_argument(
        "--accept-restored",
        action="store_true",
        help="take a restored or replaced database for the site it was",
    )


def _add_plan(commands: Commands) -> None:
    plan = command(commands, "plan", help="count what a run would do, and write nothing")
    plan.add_argument("synchronization", help=_SYNCHRONIZATION)
    plan.add_argument("--direction", choices=["both", "forward", "reverse"], default="both", help=_DIRECTION)


def _add_compare(commands: Commands) -> None:
    compare = command(commands, "compare", help="say what differs between two sites, and repair it")
    compare.add_argument("name", help="of the synchronization or replication, as in the configuration")
    compare.add_argument("--table", action="append", metavar="TABLE", help="only this one; may be repeated")
    compare.add_argument("--repair", choices=["plan", "apply"], help="say what a repair would do, or do it")
    compare.add_argument(
        "--prefer", choices=["source", "target"], help="whose row stays where no version decides"
    )


def _add_snapshot(commands: Commands) -> None:
    snapshot = command(commands, "snapshot", help="refresh or drop a snapshot")
    snapshot.add_argument(
        "action",
        choices=["refresh", "drop"],
        help="bring the copy up to date, or take Concord's part of it away",
    )
    snapshot.add_argument("name", help="of the snapshot, as in the configuration")
    snapshot.add_argument("--full", action="store_true", help="refresh: compare the whole content")
    snapshot.add_argument(
        "--plan", action="store_true", help="refresh: count what would be done, write nothing"
    )
    snapshot.add_argument("--with-table", action="store_true", help="drop: the copy too")


def _add_status(commands: Commands) -> None:
    status = command(commands, "status", help="runs, links and conflicts, here and at the sites")
    status.add_argument(
        "--max-lag",
        type=duration,
        metavar="DURATION",
        help="exit with 1 when a synchronization, or a change that waits to be sent, is older than this",
    )
    status.add_argument(
        "--lax", action="store_true", help="exit with 0 although anything is held, refused, or failed last"
    )


def _add_forget(commands: Commands) -> None:
    forget = command(commands, "forget", help="let the sites forget links that have left the configuration")
    forget.add_argument(
        "name", metavar="SITE_OR_SYNCHRONIZATION", help="which has left it; its links are forgotten"
    )


def _add_restamp(commands: Commands) -> None:
    restamp = command(commands, "restamp", help="stamp anew what a site stamped in the future")
    restamp.add_argument("site", metavar="SITE", help="where such versions were made")
    restamp.add_argument("--table", metavar="SCHEMA.NAME", help="only this one")
    restamp.add_argument("--dry-run", action="store_true", help="say which rows; write nothing")
    restamp.add_argument(
        "--limit", type=int, default=50, help="rows shown at most; all are counted; default 50"
    )


def _add_synchronize(commands: Commands) -> None:
    synchronize = command(commands, "synchronize", help="run a synchronization now, and say what came of it")
    synchronize.add_argument("synchronization", help=_SYNCHRONIZATION)
    synchronize.add_argument(
        "--direction", choices=["both", "forward", "reverse"], default="both", help=_DIRECTION
    )
    synchronize.add_argument("--table", action="append", dest="tables", help="only this one; may be repeated")
    synchronize.add_argument(
        "--plan", action="store_true", help="count what would be done, and write nothing"
    )


def _add_tombstones(commands: Commands) -> None:
    tombstones = command(commands, "tombstones", help="which site holds which tombstones, and why")
    tombstones.add_argument(
        "--force-older-than",
        type=duration,
        metavar="DURATION",
        help="remove those older than this although sites that were silent for so long have not heard of them",
    )
    tombstones.add_argument(
        "--dry-run", action="store_true", help="with force: say what would go, remove nothing"
    )


def _add_prepare(commands: Commands) -> None:
    prepare = command(
        commands,
        "prepare",
        help="write what two databases of your own need: configuration, logins, connections",
    )
    prepare.add_argument("folder", type=Path, help="where; it must not hold such files yet")
    prepare.add_argument(
        "sites",
        nargs=2,
        metavar="SITE=HOST:PORT/DATABASE",
        help="two names of sites, and where their databases are",
    )
    prepare.add_argument(
        "--table",
        action="append",
        dest="tables",
        required=True,
        metavar="SCHEMA.NAME",
        help="may be repeated",
    )
    prepare.add_argument(
        "--root-certificate",
        metavar="FILE",
        help="of the authority that signed the servers' certificates, or: system",
    )
    prepare.add_argument(
        "--replication",
        action="store_true",
        help="the second site replays the transactions of the first one, in place of a synchronization",
    )


def _add_waiting(commands: Commands) -> None:
    waiting = command(commands, "waiting", help="rows that were held or refused, and what becomes of them")
    actions = waiting.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = command(actions, "list", help="the rows that wait, each with the present one")
    listed.add_argument("--synchronization", metavar="NAME", help="only of this one")
    listed.add_argument("--limit", type=int, default=50, help="so many a link at most; default 50")
    decide = command(actions, "decide", help="say which row holds; every site follows")
    retry = command(actions, "retry", help="try refused rows among the first of the next run")
    drop = command(actions, "drop", help="let go of a row whose link has left the configuration")
    for each in (decide, retry, drop):
        each.add_argument("waiting", metavar="ID", help="as `list` shows it")
    chosen = decide.add_mutually_exclusive_group(required=True)
    chosen.add_argument("choice", nargs="?", choices=["source", "target"], help="whose row holds")
    chosen.add_argument(
        "--row", metavar="JSON", help="the columns that differ from the source's row, as a JSON object"
    )


def _add_conflicts(commands: Commands) -> None:
    conflicts = command(commands, "conflicts", help="the losers of conflicts, and how they come back")
    actions = conflicts.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = command(actions, "list", help="the collected conflicts, newest first")
    listed.add_argument("--limit", type=int, default=50, help="so many at most; default 50")
    _add_chosen(listed)
    what_if = command(actions, "what-if", help="the decisions of another policy; writes nothing")
    what_if.add_argument(
        "--policy",
        type=lambda text: tuple(name.strip() for name in text.split(",")),
        required=True,
        metavar="RESOLVER,…",
        help="asked in order, then latest_timestamp",
    )
    what_if.add_argument("--limit", type=int, default=20, help="rows shown at most; all are counted")
    _add_chosen(what_if)
    shown = command(actions, "show", help="one conflict with both rows and both versions")
    overturn = command(actions, "overturn", help="bring the loser back; every site follows")
    for each in (shown, overturn):
        each.add_argument("conflict", metavar="ID", help="the beginning of its id, as `list` shows it")
    overturn.add_argument(
        "--even-if-changed", action="store_true", help="although the row is no longer what won"
    )


def _add_chosen(conflicts: argparse.ArgumentParser) -> None:
    """Which entries of the ledger are meant."""
    conflicts.add_argument("--synchronization", metavar="NAME", help="only of this one")
    conflicts.add_argument("--table", metavar="SCHEMA.NAME", help="only of this one")
    conflicts.add_argument("--type", metavar="TYPE", help="such as update_delete")
    conflicts.add_argument(
        "--since", type=_moment, metavar="TIME", help="decided at or after, UTC: 2026-03-01T12:00"
    )
    conflicts.add_argument("--until", type=_moment, metavar="TIME", help="decided before")
