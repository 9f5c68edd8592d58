"""Edits that a wrong clock stamps, and links that run when its time has come."""

from tests.given.site import Site
from tests.given.two_sites import Pair

IN_2099 = 4_070_908_800_000_000  #: µs


def edit_in_2099(site: Site, *statements: str) -> None:
    """As the triggers stamp it while the clock is wrong."""
    site.run(f"UPDATE concord.site SET stamp_floor = {IN_2099}", *statements)
    site.run("UPDATE concord.site SET stamp_floor = 0")


def in_a_time_when_it_is_2099(sites: Pair) -> object:
    access = sites.capetown.access
    return access.model_copy(update={"max_clock_skew": 4e9})
