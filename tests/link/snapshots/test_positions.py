"""Where a snapshot goes on: after a kill, a new definition, a lost history, tombstones that went, a rewritten table."""

import time

import pytest
from psycopg.types.json import Jsonb

from concord.databases.postgresql.upkeep.cleanup import clean
from concord.jobs.upkeep import CarryingSite, SiteCleanup
from concord.messages.errors import BelowFloor, HistoryLost, IdentityChanged, StructureChanged
from tests.given.at_step import At
from tests.given.snapshot_sites import LATE, WANTED, Copies, content, counts

pytestmark = pytest.mark.spark
KILLED_AT = [
    *(
        (step, False)
        for step in ("stage", "write", "hold_fence", "content", "link_state", "commit", "remember")
    ),
    *((step, True) for step in ("expect", "write", "content", "commit", "clean_up")),
]


@pytest.mark.parametrize(("step", "full"), KILLED_AT)
def test_a_refresh_that_is_killed_leaves_the_old_or_the_new_content_and_the_next_one_goes_on(
    late: Copies, step: str, full: bool
) -> None:
    late.london.run("DELETE FROM flight WHERE id = 6", "INSERT INTO flight VALUES (20, 'JFK', 99)")
    old, new = late.capetown.rows(LATE), late.london.rows(WANTED)

    class Killed(BaseException):
        pass

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        late.refresh("late", At(step, die), full=full)
    committed = step in ("remember", "clean_up")
    assert late.capetown.rows(LATE) == (new if committed else old)
    late.london.run("INSERT INTO flight VALUES (21, 'JFK', 70)")
    assert not late.refresh("late").full
    content(late)


def test_a_definition_that_changed_is_filled_anew(late: Copies) -> None:
    late.define("late", "incremental", "public.flight", "public.late", columns=("delay",), where="delay > 80")
    report = late.refresh("late")
    assert report.full
    assert counts(report) == (0, 0, 3, 2)
    assert not late.refresh("late").full


def test_a_lost_position_is_refused_until_a_full_refresh_brings_it_back(late: Copies) -> None:
    """S4-025."""
    late.capetown.run("UPDATE concord.link_state SET history = jsonb_set(history, '{0,id}', '\"other\"')")
    late.london.run("DELETE FROM flight WHERE id = 6")
    before = late.capetown.rows(LATE)
    with pytest.raises(HistoryLost, match="snapshot refresh late --full"):
        late.refresh("late")
    assert late.capetown.rows(LATE) == before
    assert late.refresh("late", full=True).full
    content(late)
    assert not late.refresh("late").full


def test_a_full_refresh_that_is_killed_does_not_forget_that_tombstones_went_by_force(late: Copies) -> None:
    """Killed after the source heard of the session, before the target commits it (F32)."""
    late.london.run("DELETE FROM flight WHERE id = 9")
    (shadow,) = late.london.rows("SELECT shadow FROM concord.replicated_table")[0]
    late.london.run(
        f'DELETE FROM concord."{shadow}" WHERE deleted', "UPDATE concord.link_state SET forced_at = now()"
    )
    with pytest.raises(BelowFloor):
        late.refresh("late")

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        late.refresh("late", full=True, at=At("write", die))
    with pytest.raises(HistoryLost):
        late.refresh("late")
    late.refresh("late", full=True)
    content(late)


def test_a_source_that_went_back_is_refused_until_a_full_refresh(late: Copies) -> None:
    """F65: the heartbeat is lower than what the copy has read."""
    late.london.run("UPDATE concord.site SET heartbeat = 0", "DELETE FROM flight WHERE id = 6")
    with pytest.raises(IdentityChanged, match="snapshot refresh late --full"):
        late.refresh("late")
    assert late.refresh("late", full=True).full
    content(late)
    assert not late.refresh("late").full


def test_tombstones_wait_for_an_incremental_snapshot_and_then_go(late: Copies) -> None:
    """S4-018, rule 10: a snapshot that has been refreshed counts as a link out of its source."""
    tracked = late.snapshots["late"].tracked
    assert tracked is not None
    carrying = [CarryingSite(late.london.access, {tracked.name: {}}, (tracked,))]

    def cleaned() -> SiteCleanup:
        (found,) = clean(carrying, dry_run=False, now_us=time.time_ns() // 1000, min_age_us=0).tables
        return found

    late.london.run("DELETE FROM flight WHERE id = 6")
    waiting = cleaned()
    assert (waiting.held, waiting.removed) == (1, 0)
    assert [(each.link, each.versions) for each in waiting.held_back] == [("snapshot/late/forward", 1)]
    old = late.capetown.value("SELECT history FROM concord.link_state")
    late.refresh("late")
    assert cleaned().removed == 1
    content(late)
    late.capetown.connection.execute("UPDATE concord.link_state SET history = %s", (Jsonb(old),))
    with pytest.raises(BelowFloor, match="snapshot refresh late --full"):
        late.refresh("late")
    late.refresh("late", full=True)
    content(late)


@pytest.mark.parametrize(
    ("copied", "full"), [("public.flight", True), ("public.seen", True), ("public.flight", False)]
)
def test_a_table_that_is_rewritten_while_it_is_read_does_not_empty_its_copy(
    late: Copies, copied: str, full: bool
) -> None:
    """F87: to a snapshot that is older than the rewrite every row is gone, also below views."""
    late.london.run(
        "CREATE VIEW seen_below AS SELECT id, delay FROM flight", "CREATE VIEW seen AS TABLE seen_below"
    )
    name = "late"
    if full:
        name = "whole"
        late.define(name, "non_incremental", copied, "public.whole", columns=("id", "delay"))
        late.provision()
        late.refresh(name)
    table = f"SELECT id, delay FROM public.{name} ORDER BY id"
    before = late.capetown.rows(table)
    late.london.run("UPDATE flight SET delay = 1000 WHERE id = 9")
    rewrite = At("count", lambda: late.london.run("ALTER TABLE flight ALTER note TYPE text USING note || ''"))
    with pytest.raises(
        StructureChanged, match=r"london: (public\.)?flight was rewritten while public\.\w+ was read"
    ):
        late.refresh(name, at=rewrite)
    assert late.capetown.rows(table) == before
    late.refresh(name)
    assert (9, 1000) in late.capetown.rows(table)
