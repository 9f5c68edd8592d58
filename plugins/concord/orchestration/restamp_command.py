"""`python -m concord restamp`: versions stamped in the future get a stamp of now, at the site that holds them."""

from __future__ import annotations

import argparse

import pendulum

from concord.config import Configuration
from concord.databases.postgresql.restamping import Restamped, restamp
from concord.how_many import how_many
from concord.orchestration import jobs
from concord.orchestration.shown import Columns, say, show


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Do what the command line asks; exit status 1 where a row stays as it is. Raises a ConcordError."""
    jobs.known_name(asked.site, configuration.sites, "site")
    sites = jobs.carrying_sites(configuration)
    carried = {site.access.name: site.links_out for site in sites}
    if asked.table is not None:
        jobs.known_name(asked.table, carried.get(asked.site, ()), f"table that {asked.site} shares")
    found = restamp(sites, asked.site, asked.table, dry_run=asked.dry_run) if asked.site in carried else []
    title = "Rows that would be stamped anew" if asked.dry_run else "Rows stamped anew"
    columns = Columns(("table", "key", "old_stamp", "new_stamp", "left_because"), prose=("left_because",))
    show("rows", f"{title} at {asked.site}", columns, map(_line, found), if_any=True)
    stamped = sum(each.new is not None for each in found)
    ahead = "" if found else f": no version at {asked.site} is stamped in the future"
    done = "would be stamped" if asked.dry_run else "stamped"
    say(f"{stamped:,} of {how_many(len(found), 'row')} {done} anew{ahead}.")
    return 0 if stamped == len(found) else 1


def _line(each: Restamped) -> tuple[object, ...]:
    return each.table, each.key, _moment(each.old), each.new and _moment(each.new), each.why_not


def _moment(stamp: int) -> str:
    return f"{pendulum.from_timestamp(stamp / 1_000_000):YYYY-MM-DD HH:mm:ss} UTC"
