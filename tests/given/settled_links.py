"""Both links of a pair, run without Spark until the sites are equal."""

from concord.jobs.link import Direction
from tests.given.broken_constraints import broken
from tests.given.goes_on import goes_on
from tests.given.link_without_spark import carry
from tests.given.two_sites import Pair


def settle(sites: Pair, first: str) -> None:
    """Run both links twice, the link `first` before the other. Fails where a link ends with an error."""
    with goes_on():
        for direction in (first, Direction(first).related) * 2:
            carry(sites.job(direction))


def refuse_unsettled(sites: Pair) -> None:
    """The sites are equal, no constraint is broken, no row waits, and both rows of `shop` have arrived."""
    assert sites.equal
    for site in sites.sites:
        assert list(broken(site)) == []
        assert site.value("SELECT count(*) FROM concord.waiting") == 0
        assert site.value("SELECT count(*) FROM shop") == 2
