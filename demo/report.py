"""The demo's report, for a person: what each link did, where every edit went, what was promised and is so."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from rich import box
from rich.console import Console
from rich.table import Table

from concord.databases.postgresql.rows.content import Content
from concord.jobs.link import Direction
from concord.messages.how_many import how_many
from demo import workspace
from demo.expectation import SOURCES, Expectation
from demo.invitation import ADDRESS, lines
from demo.outcome import LinkOutcome, RunOutcome
from demo.proof import Check, Contents
from demo.sites import TITLES

_OUTCOMES = ("acquired", "applied", "converged", "superseded", "lost", "conflicts")


def print_run(console: Console, run: RunOutcome, seconds: float) -> None:
    """Rows per table and outcome for each link, where every edit went, and seconds per step."""
    for link in run.links.values():
        console.print()
        console.print(_rows(link))
    console.print("  acquired = applied + converged (already the same) + superseded (already newer)")
    console.print("             + lost (a conflict)")
    console.print()
    console.print(_edits(run))
    for line in _returning(run):
        console.print(f"  {line}", highlight=False)
    console.print()
    console.print(_seconds(run.links))
    in_links = sum(sum(link.seconds.values()) for link in run.links.values())
    rest = f"{in_links:.1f} s in the links + {seconds - in_links:.1f} s of Airflow's own"
    console.print(f"  The run took {seconds:.1f} s = {rest}.", highlight=False)


def print_proof(
    console: Console, contents: Contents, before: Mapping[str, Content], expected: Expectation
) -> None:
    """Count and content hash of every table at both sites, as the databases computed them."""
    table = Table("table", box=box.SIMPLE_HEAD, title="Both sites, as their databases see them")
    table.show_footer = True
    sites = list(contents.values())
    counts = [[before[name].rows, *(site[name].rows for site in sites)] for name in sites[0]]
    totals = [f"{sum(column):,}" for column in zip(*counts, strict=True)]
    table.columns[0].footer = "all"
    table.add_column("before", justify="right", footer=totals[0])
    table.add_column("edits", justify="right")
    for site, total in zip(contents, totals[1:], strict=True):
        table.add_column(TITLES[site], justify="right", footer=total)
    for site in contents:
        table.add_column(f"hash in\n{TITLES[site]}")
    for name, (start, *now) in zip(sites[0], counts, strict=True):
        grown = _grown(expected, _short_name(name))
        hashes = [_marked(site[name].hash, same=sites[0][name] == sites[1][name]) for site in sites]
        table.add_row(_short_name(name), f"{start:,}", grown, *(f"{rows:,}" for rows in now), *hashes)
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


def print_what_next(console: Console) -> None:
    """A place to click in, and commands that reach it."""
    console.print("\nWhat to try next: the same two sites, edited and not yet equal, with an Airflow")
    console.print("  make airflow", style="bold")
    console.print(f"It answers at [bold]{ADDRESS}[/], or says where. Then, in another terminal:")
    for line in lines(workspace.DEFAULT / "airflow"):
        console.print(f"  {line}", style="bold", highlight=False, soft_wrap=True)


def _rows(link: LinkOutcome) -> Table:
    title = f"{TITLES[link.source]} → {TITLES[link.target]}: rows per table and outcome"
    table = Table("table", box=box.SIMPLE_HEAD, title=title, show_footer=True)
    table.columns[0].footer = "all"
    for outcome in _OUTCOMES:
        table.add_column(outcome, justify="right", footer=f"{link.total(outcome):,}")
    for each in link.tables:
        counts = (f"{getattr(each, outcome):,}" for outcome in _OUTCOMES)
        table.add_row(_short_name(each.table), *counts)
    return table


def _edits(run: RunOutcome) -> Table:
    """Every edited row is in one of the three columns; a lost one was overwritten by either link."""
    table = Table("edited in", box=box.SIMPLE_HEAD, title="Where every edited row went")
    for heading in ("rows", "= applied at the other", "+ alike at both", "+ lost"):
        table.add_column(heading, justify="right")
    for direction, site in SOURCES.items():
        counts = _edited(run, direction)
        table.add_row(TITLES[site], f"{sum(counts):,}", *(f"{count:,}" for count in counts))
    return table


def _edited(run: RunOutcome, direction: Direction) -> tuple[int, int, int]:
    lost = sum(each.loser == SOURCES[direction] for each in run.conflicts)
    alike = run.links[Direction.FORWARD].total("converged")
    return run.links[direction].total("applied"), alike, lost


def _returning(run: RunOutcome) -> Iterator[str]:
    """Why the second link meets rows that are the same already."""
    came_back = run.links[Direction.REVERSE].total("converged")
    won, alike = _edited(run, Direction.REVERSE)[2], _edited(run, Direction.FORWARD)[1]
    first, second = (TITLES[site] for site in SOURCES.values())
    conflicts = how_many(len(run.conflicts), "conflict")
    yield f"{conflicts} = {len(run.conflicts) - won:,} lost in {first} + {won:,} lost in {second}."
    yield f"{second} sends back {how_many(came_back, 'converged row')} = {won:,} that {first} won + {alike:,} alike:"
    yield "they now carry what both sites did."


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


def _grown(expected: Expectation, table: str) -> str:
    added, removed = expected.added.get(table, 0), expected.removed.get(table, 0)
    return " ".join(f"{sign}{count}" for sign, count in (("+", added), ("-", removed)) if count)


def _short_name(table: str) -> str:
    return table.removeprefix("public.")


def _marked(content: str, *, same: bool) -> str:
    """The databases' hash has some forty digits: enough of it to compare by eye."""
    return f"[{'green' if same else 'red'}]{sha256(content.encode()).hexdigest()[:8]}[/]"
