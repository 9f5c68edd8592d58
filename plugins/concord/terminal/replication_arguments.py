"""The commands about replications, and their arguments."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from concord.terminal.arguments import command, duration

if TYPE_CHECKING:
    from concord.terminal.arguments import Commands


def add_replicate(commands: Commands) -> None:
    """`replicate`."""
    replicate = command(
        commands, "replicate", help="replay what a publisher has committed by now, at its subscriber"
    )
    replicate.add_argument("name", help="of the replication, as in the configuration")
    replicate.add_argument(
        "--initialize", action="store_true", help="copy the tables, and begin the publisher's log there"
    )
    replicate.add_argument(
        "--replace", action="store_true", help="initialize: delete the rows that the subscriber has first"
    )
    replicate.add_argument(
        "--table",
        action="append",
        dest="tables",
        metavar="SCHEMA.NAME",
        help="initialize: copy this one, and replay what waits of the others; may be repeated",
    )


def add_wait(commands: Commands) -> None:
    """`wait`."""
    wait = command(
        commands, "wait", help="wait until a subscriber has all that its publisher has committed by now"
    )
    wait.add_argument("name", help="of the replication, as in the configuration")
    wait.add_argument(
        "--timeout", type=duration, default=timedelta(minutes=10), help="as `30 s`; default: 10 minutes"
    )


def add_cost(commands: Commands) -> None:
    """`cost`."""
    cost = command(
        commands, "cost", help="say which costs less: to carry changes, or to copy the tables anew"
    )
    cost.add_argument("name", help="of the synchronization or replication, as in the configuration")


def add_entry(commands: Commands) -> None:
    """`entry` with its actions."""
    entry = command(commands, "entry", help="a transaction that cannot be replayed, and what becomes of it")
    actions = entry.add_subparsers(dest="action", required=True, metavar="ACTION")
    shown = command(actions, "show", help="its operations; nothing is replayed")
    retry = command(actions, "retry", help="replay it now, and all after it")
    skip = command(actions, "skip", help="replay none of its operations; its tables differ from then on")
    quarantine = command(actions, "quarantine", help="replay it without the operations that fail")
    apply = command(actions, "apply", help="where both sites write: one site's rows stand, and both go on")
    for each in (shown, retry, skip, quarantine, apply):
        each.add_argument("name", help="of the replication, as in the configuration")
        each.add_argument("number", type=int, help="of the transaction, as the error names it")
        each.add_argument(
            "--direction",
            choices=["forward", "reverse"],
            default="forward",
            help="reverse: of the subscriber, where both sites write",
        )
    apply.add_argument("--winner", required=True, help="the site whose rows stand")
    apply.add_argument(
        "--operation",
        type=int,
        action="append",
        metavar="N",
        help="the row of this operation alone, as `entry show` counts them; may be repeated. Without it: all rows that"
        " both sites have changed",
    )
    for each in (skip, quarantine):
        each.add_argument("--reason", required=True, help="is kept beside the operations")
