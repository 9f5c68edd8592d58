"""The demo's report, for a person: what each link did, who won each conflict, what was promised and is so."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from concord.link import Direction
from demo.outcome import Decided, LinkOutcome, RunOutcome
from demo.proof import Check, Contents
from demo.sites import TITLES

_OUTCOMES = ("acquired", "applied", "converged", "superseded", "lost", "conflicts")

#: As many conflicts as a person reads.
_SHOWN_CONFLICTS = 12


def print_run(console: Console, run: RunOutcome) -> None:
    """Rows per table and outcome, and seconds per step, for each link."""
    for link in run.links.values():
        console.print()
        console.print(_rows(link))
    console.print(
        "  [dim]acquired = applied + converged (already the same) + superseded (already newer) + lost (a conflict)[/]"
    )
    console.print()
    console.print(_seconds(run.links))


def print_conflicts(console: Console, conflicts: Sequence[Decided]) -> None:
    """Some conflicts of every kind, with what differs between winner and loser."""
    shown = _of_every_kind(conflicts, _SHOWN_CONFLICTS)
    table = Table(
        "row", "type", "what differs: [green]winner[/] / [red]loser[/]", "winner", "why", box=box.SIMPLE_HEAD
    )
    table.title = f"Conflicts: {len(conflicts)}"
    for each in shown:
        differs = "\n".join(_differences(each))
        table.add_row(_row_name(each), each.type, differs, TITLES[each.winner], _why(each))
    console.print()
    console.print(table)
    if more := len(conflicts) - len(shown):
        console.print(
            f"  … and {more} more of the same kinds. Every loser's whole row is in concord.conflict."
        )


def print_proof(console: Console, contents: Contents) -> None:
    """Count and content hash of every table at both sites, as the databases computed them."""
    table = Table("table", box=box.SIMPLE_HEAD, title="Both sites, as their databases see them")
    for site in contents:
        table.add_column(f"rows in {TITLES[site]}", justify="right")
    for site in contents:
        table.add_column(f"content hash in {TITLES[site]}")
    one, other = contents.values()
    for name in one:
        same = "green" if one[name] == other[name] else "red"
        counts = [f"{site[name].rows:,}" for site in (one, other)]
        hashes = [f"[{same}]{_short(site[name].hash)}[/]" for site in (one, other)]
        table.add_row(name, *counts, *hashes)
    console.print()
    console.print(table)


def print_verdict(console: Console, checks: Sequence[Check], seconds: float) -> bool:
    """Every promise, and whether it is kept; True when all are."""
    console.print()
    for check in checks:
        mark = "[green]✓[/]" if check.kept else "[red]✗[/]"
        console.print(
            f"{mark} {check.promise}" + ("" if check.kept else f": [red]{check.trouble}[/]"), highlight=False
        )
    broken = sum(not check.kept for check in checks)
    if broken:
        console.print(f"\n[red bold]{broken} of {len(checks)} promises broken[/]", highlight=False)
    else:
        console.print(
            f"\n[green bold]All {len(checks)} promises kept[/] in {seconds:.0f} s.", highlight=False
        )
    return not broken


def _rows(link: LinkOutcome) -> Table:
    title = f"{TITLES[link.source]} → {TITLES[link.target]}: rows per table and outcome"
    table = Table("table", box=box.SIMPLE_HEAD, title=title, show_footer=True)
    table.columns[0].footer = "all"
    for outcome in _OUTCOMES:
        table.add_column(outcome, justify="right", footer=f"{link.total(outcome):,}")
    for each in link.tables:
        table.add_row(each.table, *(f"{getattr(each, outcome):,}" for outcome in _OUTCOMES))
    return table


def _seconds(links: Mapping[Direction, LinkOutcome]) -> Table:
    table = Table("step", box=box.SIMPLE_HEAD, title="Seconds per step", show_footer=True)
    table.columns[0].footer = "all"
    for link in links.values():
        title = f"{TITLES[link.source]} → {TITLES[link.target]}"
        table.add_column(title, justify="right", footer=f"{sum(link.seconds.values()):.2f}")
    for step in dict.fromkeys(step for link in links.values() for step in link.seconds):
        table.add_row(
            step.replace("_", " "), *(f"{link.seconds.get(step, 0):.2f}" for link in links.values())
        )
    return table


def _of_every_kind(conflicts: Sequence[Decided], most: int) -> list[Decided]:
    """One of each table, type and winner in turn, until there are enough."""
    kinds: dict[tuple[str, str, str], list[Decided]] = {}
    for each in conflicts:
        kinds.setdefault((each.table, each.type, each.winner), []).append(each)
    in_turn = [each for turn in zip_longest(*kinds.values()) for each in turn if each is not None]
    return sorted(in_turn[:most], key=lambda each: (each.table, each.type, each.winner))


def _row_name(each: Decided) -> str:
    return f"{each.table.removeprefix('public.')} {' '.join(each.key)}".replace(":00+00", "Z")


def _why(each: Decided) -> str:
    return f"{each.reason}, later by {each.later_by:.3f} s"


def _differences(each: Decided) -> Iterator[str]:
    won, lost = each.winner_row, each.loser_row
    if won is None or lost is None:
        yield " / ".join(
            f"[{colour}]{'deleted' if row is None else _changed(row)}[/]"
            for colour, row in (("green", won), ("red", lost))
        )
        return
    for column, value in won.items():
        if value != lost.get(column):
            yield f"{column}: [green]{value}[/] / [red]{lost.get(column)}[/]"


def _changed(row: Mapping[str, Any]) -> str:
    """Of a row whose rival is gone: what the demo's users had changed in it."""
    return f"dep_delay {row['dep_delay']}" if "dep_delay" in row else "changed"


def _short(content: str) -> str:
    """The databases' hash has some forty digits: enough of it to compare by eye."""
    return sha256(content.encode()).hexdigest()[:16]
