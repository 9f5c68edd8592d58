"""Versions stamped in the future are stamped anew at the site that holds them (`versions.restamp`).

The epoch of each synchronization of the site is taken at both ends first, as a link takes its own (F58). No run
that began before carries such a version away after the other sites were asked which versions they have seen. A
snapshot carries no versions, and to it a new stamp is an edit like any other. A cleanup takes only tombstones that
all sites hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import psycopg

from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import connect, in_our_words, one
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.upkeep.cleanup import OpenSite, look_at
from concord.databases.postgresql.upkeep.restamped_table import RestampedTable
from concord.jobs.upkeep import CarryingSite, Restamped
from concord.messages.errors import ClockSkew, RestampRefused
from concord.versions.restamp import Clock


def restamp(
    sites: Sequence[CarryingSite], name: str, table: str | None, epochs: Mapping[str, int] | None
) -> Iterator[Restamped]:
    """Stamp the rows of one table, or of all, at the site of that name, under the epochs of its synchronizations.

    Without epochs it writes nothing, and says which rows it would stamp. Raises a ConcordError.
    """
    try:
        with ExitStack() as stack:
            opened = {site.access.name: _opened(site, stack) for site in sites}
            here = opened.pop(name)
            if epochs is not None:
                _fence(here, opened, epochs)
            for each in [table] if table else sorted(here.site.links_out):
                others = [other for other in opened.values() if each in other.site.links_out]
                yield from RestampedTable(here, others, each, _clock(here, others), epochs).run()
    except psycopg.Error as error:
        raise in_our_words(error, f"restamp at {name}") from error


def _opened(site: CarryingSite, stack: ExitStack) -> OpenSite:
    try:
        return look_at(stack.enter_context(connect(site.access.applier, link_state.RESTAMPING)), site)
    except psycopg.Error as error:
        raise in_our_words(error, site.access.name) from error


def _fence(here: OpenSite, others: Mapping[str, OpenSite], epochs: Mapping[str, int]) -> None:
    """Raises LeaseLost, or WriteContended."""
    peers = {link: peer for links in here.site.links_out.values() for link, peer in links.items()}
    ends = {(link.rpartition("/")[0], end) for link, peer in peers.items() for end in (here.name, peer)}
    for synchronization, end in sorted(ends):
        connection = (here if end == here.name else others[end]).connection
        link_state.fence(connection, synchronization, epochs[synchronization], end)


def _clock(here: OpenSite, others: Sequence[OpenSite]) -> Clock:
    """The other sites' clocks are read first: what takes time makes the latest stamp earlier, never later."""
    theirs = {other: _now(other) for other in others}
    origin, now, floor = one(
        here.connection, f"SELECT origin, {row_version.NOW}, stamp_floor FROM concord.site"
    )
    clocks = {**theirs, here: int(now)}
    for other in others:
        _refuse_skew(here, other, abs(clocks[here] - clocks[other]))
    clock = Clock(origin, now, min(at + _skew(each) for each, at in clocks.items()), floor)
    if floor > clock.latest:
        raise RestampRefused(
            f"{here.name}: its stamp floor lies in the future, since deletes from there were cleaned away; no stamp of"
            " now is later than these"
        )
    return clock


def _now(each: OpenSite) -> int:
    return int(one(each.connection, f"SELECT {row_version.NOW}")[0])


def _skew(each: OpenSite) -> int:
    return int(each.site.access.max_clock_skew * 1_000_000)


def _refuse_skew(here: OpenSite, other: OpenSite, apart: int) -> None:
    """Raises ClockSkew: a clock that is wrong still tells no future."""
    skew = min(_skew(here), _skew(other))
    if apart > skew:
        raise ClockSkew(
            f"the clocks of {here.name} and {other.name} are {apart / 1_000_000:.0f} s apart, more than"
            f" max_clock_skew ({skew / 1_000_000:g} s); set the wrong one first. Nothing was written"
        )
