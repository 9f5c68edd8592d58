"""Whatever is edited wherever, under clocks of two kinds: later edits win, and no edit is lost."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.given.fixtures import MakeShops
from tests.given.marked_sites import (
    LOCAL_SECONDS,
    MICROSECONDS,
    SHADOW,
    Shops,
    quiet,
)

pytestmark = pytest.mark.spark
EXAMPLES = 12
STEPS = [
    *itertools.product((0, 1), ("insert", "update", "update", "update", "delete", "bring_back")),
    *((place, "run") for place in (0, 1) * 3),
]


class Story:
    """The edits of one key, and which edit each edit has read: those that may lose, and those that must not."""

    def __init__(self, both: Shops, key: int) -> None:
        self.both, self.key = both, key
        self.made: dict[str, str | None] = {}  #: an edit's note → the note that it replaced
        self.first = "forward"

    def take(self, place: int, step: str) -> None:
        shop = self.both.both[place]
        if step == "run":
            self.first = ("forward", "reverse")[place]
            self.both.pair.run(self.first)
            return
        present = shop.row(self.key)
        if (step == "insert") != (present is None):
            return
        note = f"{self.key} {place} {len(self.made)}"
        read = present[0] if present else None
        self.made[note] = read
        shop.write(self.key, note, step)

    def before(self, note: str | None) -> set[str]:
        """Everything that an edit has seen."""
        seen: set[str] = set()
        while note is not None and (note := self.made.get(note)) is not None:
            seen.add(note)
        return seen

    def check(self) -> None:
        conflicts = [c for c in self.both.pair.conflicts() if c["key"] == [str(self.key)]]
        lost = {conflict["loser_row"]["note"] for conflict in conflicts}
        replaced = {read for read in self.made.values() if read}
        final = self.both.london.row(self.key)
        assert set(self.made) <= lost | replaced | ({final[0]} if final else set())
        if final:
            assert final[0] not in replaced, "a later edit of its reader has lost to it"
        for conflict in conflicts:
            winner, loser = conflict["winner_row"]["note"], conflict["loser_row"]["note"]
            assert loser not in self.before(winner), "what the winner had seen is no conflict"
            assert winner not in self.before(loser), "a later edit lost to what it had seen"


@pytest.mark.timeout(240)
def test_whatever_is_edited_wherever_later_edits_win_and_no_edit_is_lost(shops: MakeShops) -> None:
    both = shops(clocks=(MICROSECONDS, LOCAL_SECONDS))
    keys = itertools.count(100)

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=10))
    def holds(steps: list[tuple[int, str]]) -> None:
        story = Story(both, next(keys))
        for place, step in steps:
            story.take(place, step)
        both.pair.settle(first=story.first)
        assert both.agree
        story.check()

    holds()
    quiet(both)
    for site in both.pair.sites:
        versions = f"SELECT id, origin, changed_at, vector, deleted, born FROM {SHADOW} ORDER BY id"
        assert site.rows(versions) == both.pair.london.rows(versions)
