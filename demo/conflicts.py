"""The conflicts of the demo's run, for a person: how many of which kind, and some with what either site did."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from concord.versions.conflict import in_words
from demo.expectation import SOURCES
from demo.outcome import Decided
from demo.sites import TITLES

#: As many conflicts as a person reads.
_SHOWN = 8


def print_conflicts(console: Console, conflicts: Sequence[Decided]) -> None:
    """How many there are of each kind, and some of every kind with what differs between winner and loser."""
    console.print()
    console.print(_kinds(conflicts))
    shown = _of_every_kind(conflicts, _SHOWN)
    table = Table(
        "row", box=box.SIMPLE_HEAD, title="Some of them: the [green]winner[/] and the [red]loser[/]"
    )
    for site in TITLES:
        table.add_column(f"in {TITLES[site]}")
    table.add_column("who won")
    for each in shown:
        table.add_row(_row_name(each), *(_did(each, site) for site in TITLES), _why(each))
    console.print()
    console.print(table)
    if more := len(conflicts) - len(shown):
        console.print(
            f"  … and {more} more. Every loser's whole row is in concord.conflict.", highlight=False
        )


def kind(each: Decided) -> str:
    """The two edits that met, in words."""
    return in_words(each.type, TITLES[SOURCES[each.direction]], TITLES[SOURCES[each.direction.related]])


def _kinds(conflicts: Sequence[Decided]) -> Table:
    table = Table("what was done to one row", box=box.SIMPLE_HEAD, title="Conflicts", show_footer=True)
    table.columns[0].footer = "all"
    table.add_column("rows", justify="right", footer=f"{len(conflicts):,}")
    for site, title in TITLES.items():
        won = sum(each.winner == site for each in conflicts)
        table.add_column(f"{title} won", justify="right", footer=f"{won:,}")
    by_kind: dict[str, list[Decided]] = {}
    for each in conflicts:
        by_kind.setdefault(kind(each), []).append(each)
    for name, found in sorted(by_kind.items()):
        won_by = [sum(each.winner == site for each in found) for site in TITLES]
        table.add_row(name, *(f"{count:,}" for count in (len(found), *won_by)))
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
    """The default resolver's reason is the time; another's is told as it is."""
    later = f"{each.later_by:.3f} s later"
    because = later if each.reason == "changed_at differs" else f"{each.reason}, {later}"
    return f"{TITLES[each.winner]}\n{because}"


def _did(each: Decided, site: str) -> str:
    """A site's edit of the row: the columns in which the other one has it otherwise."""
    won = each.winner == site
    row, other = (each.winner_row, each.loser_row) if won else (each.loser_row, each.winner_row)
    return f"[{'green' if won else 'red'}]{'deleted' if row is None else ', '.join(_values(row, other))}[/]"


def _values(row: Mapping[str, Any], other: Mapping[str, Any] | None) -> Iterator[str]:
    if other is None:  # of a row whose rival is gone: what the demo's users had changed in it
        yield f"dep_delay {row['dep_delay']}" if "dep_delay" in row else "changed"
        return
    yield from (f"{column} {value}" for column, value in row.items() if value != other.get(column))
