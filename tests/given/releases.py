"""The versions of PostgreSQL that the tests' servers have: `make test POSTGRES=18`, or `POSTGRES=15,18` for two."""

import os

#: One version for all sites, or London's and that of the others: "15,18".
POSTGRES = "TESTS_POSTGRES"
#: The version that the demo and the tests have where no other one is chosen.
USUAL = 16


def release_of(site: str) -> int:
    """The version of this site's server."""
    london, *others = (int(each) for each in os.environ.get(POSTGRES, str(USUAL)).split(","))
    return others[0] if others and site != "london" else london


def have_pgvector() -> bool:
    """Whether the servers of all sites have the extension `vector`: those of the demo's wheel do."""
    return {release_of("london"), release_of("capetown")} <= {16, 18}


def differ() -> bool:
    """Whether London's server has another version than that of the other sites."""
    return release_of("london") != release_of("capetown")
