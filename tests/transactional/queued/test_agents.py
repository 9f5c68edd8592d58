"""The work of the agents that queued updating has elsewhere: who reads, who keeps, who applies (S3-09)."""

import pytest

from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.transactional.replicate import replicate
from tests.given.queued_preferences import are_alike, preferences
from tests.given.replicated_accounts import Make

#: Tables in which the session that replays keeps what it has read.
STAGING = (
    "SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relname LIKE 'concord\\_operation\\_%'"
)


@pytest.mark.parametrize("way", Direction)
def test_each_way_is_read_into_staging_tables_and_applied_from_there(
    replicated: Make, way: Direction
) -> None:
    """S3-11: the transactions of a log are staged. S3-12: they are applied at the site where they are staged."""
    sites = preferences(replicated)
    source, target = sites.sites if way is Direction.FORWARD else sites.sites[::-1]
    source.run("UPDATE preference SET colour = 'new' WHERE person = 5")
    seen: dict[str, tuple[bool, str]] = {}

    def look(step: str) -> None:
        colour = target.value("SELECT colour FROM preference WHERE person = 5")
        seen.setdefault(step, (target.value(STAGING) > 0, colour))

    replicate(sites.job(way), dialect, look)
    assert seen["inspect"] == (False, "colour 5")
    assert list(seen)[-3:] == ["stage", "replay", "confirm"]
    assert (seen["stage"], seen["replay"], seen["confirm"]) == (*[(True, "colour 5")] * 2, (True, "new"))
    assert are_alike(sites)
