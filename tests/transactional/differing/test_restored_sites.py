"""Where both sites write, a message about a restore names the site that was restored, whatever its part is."""

from collections.abc import Iterator

import pytest

from concord.jobs.link import Direction
from concord.messages.errors import HistoryLost
from embedded.postgres import Server
from tests.given.fixtures import two_empty_sites
from tests.given.replicated_sites import Replicated, begin_replicated

TABLE = ("CREATE TABLE note (id int PRIMARY KEY, said text)",)
#: The level of a direction, as its target tells it, after a restore of the target or of the source.
GONE_BACK, AHEAD = "level - 1", "level + 1000000000"


@pytest.fixture(scope="module", params=["both", "queued"])
def sites(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Replicated]:
    with two_empty_sites(server_with_logins) as both:
        made = begin_replicated(*both, TABLE, "public.note", updates=request.param)
        made.initialize_both_ways()
        yield made


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("changed", [GONE_BACK, AHEAD])
def test_the_message_names_the_restored_site(sites: Replicated, direction: Direction, changed: str) -> None:
    source, target = sites.sites if direction is Direction.FORWARD else sites.sites[::-1]
    source.run("DELETE FROM note", f"INSERT INTO note VALUES (1, '{direction} {changed}')")
    for way in Direction:
        sites.run(direction=way)
    before = target.value("SELECT level FROM concord.replay")
    target.run(f"UPDATE concord.replay SET level = {changed}")
    restored = target.name if changed == GONE_BACK else source.name
    with pytest.raises(
        HistoryLost, match=rf"^{source.name}: .* as after a restore of {restored}\b"
    ) as refused:
        sites.run(direction=direction)
    assert "publisher" not in refused.value.message
    assert "subscriber" not in refused.value.message
    target.run(f"UPDATE concord.replay SET level = {before}")
    assert sites.run(direction=direction).entries == 0
