"""The state of links at one end, read together with the row of its site."""

import pytest

from concord.databases.postgresql.rows import link_state
from concord.messages.errors import NotInitialized
from tests.given.bare_sites import Bare
from tests.given.link_job import next_epoch
from tests.given.site import provision_site


@pytest.mark.parametrize("known", [[], ["pair/forward"]])
def test_an_end_that_does_not_know_one_of_the_links_says_so(sites: Bare, known: list[str]) -> None:
    site, links = sites.london, ["pair/forward", "pair/reverse"]
    provision_site(site, ())
    for link in known:
        site.run(f"INSERT INTO concord.link_state (link, role, peer) VALUES ('{link}', 'source', 'capetown')")
    with pytest.raises(NotInitialized, match="london knows nothing of the link pair/"):
        link_state.memory(site.connection, links, "london")
    with pytest.raises(NotInitialized, match="london knows nothing of the link pair/"):
        link_state.fenced_memory(site.connection, "pair", next_epoch(), links, "london")
