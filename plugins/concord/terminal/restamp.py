"""`python -m concord restamp`: versions stamped in the future get a stamp of now, at the site that holds them."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect_of_all
from concord.jobs.upkeep import Restamped
from concord.messages.how_many import how_many
from concord.orchestration.leases import keeping, owners
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import jobs
from concord.terminal.shown import Columns, say, show
from concord.values.moment import moment

_COLUMNS = Columns(("table", "key", "old_stamp", "new_stamp", "left_because"), prose=("left_because",))


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; exit status 1 where a row stays as it is. Raises a ConcordError."""
    jobs.known_name(asked.site, configuration.sites, "site")
    sites = jobs.carrying_sites(configuration)
    carried = {site.access.name: site.links_out for site in sites}
    if asked.table is not None:
        jobs.known_name(asked.table, carried.get(asked.site, ()), f"table that {asked.site} shares")
    if asked.site not in carried:
        return _told(asked, ())
    upkeep = dialect_of_all(site.access for site in sites).upkeep
    with _epochs(asked, configuration) as epochs:
        return _told(asked, upkeep.restamp(sites, asked.site, asked.table, epochs))


@contextmanager
def _epochs(asked: argparse.Namespace, configuration: Configuration) -> Iterator[dict[str, int] | None]:
    """Of every synchronization of the site, which does not run meanwhile; none are needed where nothing is written."""
    if asked.dry_run:
        yield None
        return
    names = [name for name, pair in configuration.synchronizations.items() if asked.site in pair.sites]
    owner = owners.of_command(getpass.getuser())
    with keeping.all_kept(repository(), names, owner) as epochs:
        yield epochs


def _told(asked: argparse.Namespace, found: Iterable[Restamped]) -> int:
    """All are counted; the first are shown."""
    shown: list[Restamped] = []
    stamped = rows = 0
    for each in found:
        rows += 1
        stamped += each.new is not None
        if rows <= asked.limit:
            shown.append(each)
    title = "Rows that would be stamped anew" if asked.dry_run else "Rows stamped anew"
    show("rows", f"{title} at {asked.site}", _COLUMNS, map(_line, shown), if_any=True)
    if rows > len(shown):
        say(f"and {rows - len(shown)} more; raise --limit, or choose by --table")
    ahead = "" if rows else f": no version at {asked.site} is stamped in the future"
    done = "would be stamped" if asked.dry_run else "stamped"
    say(f"{stamped:,} of {how_many(rows, 'row')} {done} anew{ahead}.", rows_found=rows, rows_stamped=stamped)
    return 0 if stamped == rows else 1


def _line(each: Restamped) -> tuple[object, ...]:
    return each.table, each.key, _moment(each.old), each.new and _moment(each.new), each.why_not


def _moment(stamp: int) -> str:
    return f"{moment(stamp):%Y-%m-%d %H:%M:%S} UTC"
