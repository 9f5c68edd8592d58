"""Marks kept by the application on the row: no triggers, a tolerance, each site's precision and zone (design 5)."""

import itertools
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pendulum
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concord.config_settings import TableSettings
from concord.databases.postgresql import tombstone_agreement
from concord.databases.postgresql.common_history import declare_equal
from concord.databases.postgresql.tombstones import CarryingSite, clean
from concord.databases.provisioning import check, provision
from concord.policy import Policy
from concord.replication_set import TableName
from embedded.postgres import Server
from tests.conftest import PROJECT, Database
from tests.link.conftest import site_on
from tests.link.installations import Bare, installation
from tests.link.marked import (
    LOCAL_MILLISECONDS,
    LOCAL_SECONDS,
    MARKS,
    MICROSECONDS,
    MILLISECONDS,
    SECONDS,
    SHADOW,
    Clock,
    Shops,
    open_shops,
)
from tests.link.pair import APPLICATION, APPLIER, SYNCHRONIZATION, At, Pair, Site, carried

SIDES = ("winner_row", "loser_row")
LIVE = TableName(schema_name="public", name="customer_live")

pytestmark = pytest.mark.spark

MakeShops = Callable[..., Shops]
CONTROL = {"concord.site", "concord.synchronization", "concord.link_state", "concord.replicated_table"}


@pytest.fixture
def sites(server_with_logins: Server, database: Callable[[], Database]) -> Iterator[Bare]:
    both = Bare(*(site_on(server_with_logins, name, database().name) for name in ("london", "capetown")))
    yield both
    for site in both.sites:
        site.connection.close()


@pytest.fixture
def shops(request: pytest.FixtureRequest, sites: Bare) -> MakeShops:
    """Call it once; Spark starts only when a link needs it."""

    def make(**changed: Any) -> Shops:
        return open_shops(*sites.sites, lambda: request.getfixturevalue("spark"), **changed)

    return make


def quiet(shops: Shops) -> None:
    """Three further rounds write nothing, by the databases' own counters (rule 12)."""
    before = [site.writes() for site in shops.pair.sites]
    for _ in range(3):
        assert shops.pair.run("forward").total("acquired") == shops.pair.run("reverse").total("acquired") == 0
    for site, then in zip(shops.pair.sites, before, strict=True):
        assert {table for table, count in site.writes().items() if count != then[table]} <= CONTROL


def test_an_edit_arrives_without_any_trigger(shops: MakeShops) -> None:
    # S1-32 a
    both = shops()
    both.london.update(1, "from london")
    both.london.insert(11, "new")
    both.capetown.update(2, "from cape town")
    both.pair.settle()
    assert both.agree
    assert both.capetown.row(1) == ("from london", False)
    assert both.capetown.row(11) == ("new", False)
    assert both.london.row(2) == ("from cape town", False)
    assert both.pair.conflicts() == []
    for site in both.pair.sites:
        assert site.rows("SELECT tgname FROM pg_trigger WHERE tgrelid = 'customer'::regclass") == []
    quiet(both)


@pytest.mark.timeout(600)
def test_many_marked_edits_of_a_large_table_are_looked_up_by_key(shops: MakeShops) -> None:
    # Ten thousand edits of a large table took a minute, as one sequential scan each; by key, three seconds.
    all_rows, many = 200_000, 10_000
    both = shops(common=f"SELECT n, 'common', '2026-01-02 03:04:05+00' FROM generate_series(1, {all_rows}) n")
    for site in both.pair.sites:
        site.run("VACUUM (ANALYZE)")
    edited = f"UPDATE customer SET note = 'london', updated_at = clock_timestamp() WHERE id <= {many}"
    both.london.site.as_application(edited)
    report = both.pair.run("forward")
    assert carried(report).applied == many
    assert both.agree
    assert report.seconds["write"] < 15


@pytest.mark.parametrize(
    "clocks",
    [(MICROSECONDS, MILLISECONDS), (MICROSECONDS, LOCAL_SECONDS), (SECONDS, LOCAL_MILLISECONDS)],
    ids=["microseconds and milliseconds", "microseconds and local seconds", "seconds and local milliseconds"],
)
def test_other_precision_and_zone_neither_ping_pong_nor_alter_a_value(
    shops: MakeShops, clocks: tuple[Clock, Clock]
) -> None:
    """F18, F19: cut, never rounded up; what comes back is the same version, and writes nothing."""
    both = shops(clocks=clocks)
    both.london.update(1, "from london")
    both.capetown.update(2, "from cape town")
    both.london.insert(11, "new")
    made = [both.london.mark(1), both.london.mark(11), both.capetown.mark(2)]
    both.pair.settle()
    assert both.agree
    assert both.equal
    assert [both.london.mark(1), both.london.mark(11), both.capetown.mark(2)] == made
    for key in (1, 2, 11):
        ours, theirs = (shop.moment(key) for shop in both.both)
        origin, copy = (theirs, ours) if key == 2 else (ours, theirs)
        assert 0 <= origin - copy < 1_000_000
    quiet(both)
    send_everything_back(both)
    assert [both.london.mark(1), both.london.mark(11), both.capetown.mark(2)] == made
    quiet(both)


def send_everything_back(both: Shops) -> None:
    """Both links forget all sessions but the first: nothing of what the other end wrote is left out (rule 2)."""
    for site in both.pair.sites:
        site.run("UPDATE concord.link_state SET history = jsonb_build_array(history -> -1)")
    before = {site.name: site.writes()["public.customer"] for site in both.pair.sites}
    reports = [both.pair.run("forward"), both.pair.run("reverse")]
    assert sum(report.total("acquired") for report in reports) > 0
    assert [report.total("applied") for report in reports] == [0, 0]
    assert {site.name: site.writes()["public.customer"] for site in both.pair.sites} == before


def test_a_second_edit_within_one_tick_of_the_mark_is_seen(shops: MakeShops) -> None:
    """The mark says nothing new; the row's content does."""
    both = shops(clocks=(SECONDS, SECONDS))
    both.london.update(1, "first")
    both.pair.settle()
    both.london.site.as_application("UPDATE customer SET note = 'second' WHERE id = 1")
    both.pair.settle()
    assert both.capetown.row(1) == ("second", False)
    both.capetown.site.as_application("UPDATE customer SET note = 'third' WHERE id = 1")
    both.pair.settle()
    assert both.london.row(1) == ("third", False)
    assert both.pair.conflicts() == []


def test_a_clock_that_is_behind_does_not_make_a_later_edit_lose(shops: MakeShops) -> None:
    """S1-27, F16: who edits what he has seen wins over what he saw, whatever his mark says."""
    both = shops()
    both.london.update(1, "seen")
    both.pair.settle()
    both.capetown.site.as_application(
        "UPDATE customer SET note = 'later', updated_at = clock_timestamp() - interval '10 minutes' WHERE id = 1"
    )
    both.pair.settle()
    assert both.london.row(1) == both.capetown.row(1) == ("later", False)
    assert both.pair.conflicts() == []


def test_a_mark_that_lies_ahead_of_the_clock_counts_as_now(shops: MakeShops) -> None:
    both = shops()
    both.london.site.as_application(
        "UPDATE customer SET note = 'from the year 3000', updated_at = '3000-01-01' WHERE id = 1",
        "UPDATE customer SET note = 'for ever', updated_at = 'infinity' WHERE id = 2",
    )
    both.pair.run("forward")
    both.london.update(2, "after all")
    both.capetown.update(1, "later")
    both.pair.settle()
    assert both.london.row(1) == both.capetown.row(1) == ("later", False)
    assert both.london.row(2) == both.capetown.row(2) == ("after all", False)
    quiet(both)


def test_a_flagged_row_is_a_tombstone_and_its_key_can_be_used_again(shops: MakeShops) -> None:
    """S1-24, T20."""
    both = shops()
    both.london.delete(1)
    both.pair.settle()
    assert both.capetown.row(1) == ("common", True)
    for site in both.pair.sites:
        assert site.rows(f"SELECT id FROM {SHADOW} WHERE deleted") == [(1,)]
    both.capetown.bring_back(1, "again")
    both.pair.settle()
    assert both.london.row(1) == ("again", False)
    for site in both.pair.sites:
        assert site.rows(f"SELECT id FROM {SHADOW} WHERE deleted") == []
    assert both.pair.conflicts() == []
    quiet(both)


def test_an_update_and_a_delete_conflict_both_ways_with_both_images(shops: MakeShops) -> None:
    both = shops()
    both.london.delete(1)
    both.capetown.update(1, "still needed")
    both.london.update(2, "needed too")
    both.capetown.delete(2)
    both.london.insert(11, "of london")
    both.capetown.insert(11, "of cape town")
    both.pair.settle()
    assert both.agree
    assert both.london.row(1) == ("still needed", False)
    assert both.london.row(2) == ("common", True)
    assert both.london.row(11) == ("of cape town", False)
    found = {
        row["key"][0]: (
            row["type"],
            row["winner_row"]["note"],
            row["loser_row"]["note"],
            row["loser_row"]["is_deleted"],
        )
        for row in both.pair.conflicts()
    }
    assert found == {
        "1": ("delete_update", "still needed", "common", "true"),
        "2": ("update_delete", "common", "needed too", "false"),
        "11": ("insert_insert", "of cape town", "of london", "false"),
    }
    quiet(both)


def test_an_edit_that_nobody_has_registered_is_not_overwritten(shops: MakeShops) -> None:
    """The essential race: the target's application edits after both ends were registered, before the row is locked."""
    both = shops()
    both.london.update(1, "from london")
    both.pair.run("forward", at=At("lock", lambda: both.capetown.update(1, "meanwhile")))
    (conflict,) = both.pair.conflicts()
    assert (conflict["type"], conflict["winner_row"]["note"], conflict["loser_row"]["note"]) == (
        "update_update",
        "meanwhile",
        "from london",
    )
    both.pair.settle()
    assert both.london.row(1) == both.capetown.row(1) == ("meanwhile", False)
    assert len(both.pair.conflicts()) == 1
    quiet(both)


def test_a_row_inserted_after_the_keys_were_locked_is_not_overwritten(shops: MakeShops) -> None:
    """Nothing locks a key that does not exist: the insert wins the race, and the link tries again."""
    both = shops()
    both.london.insert(11, "from london")
    both.pair.run("forward", at=At("judge", lambda: both.capetown.insert(11, "meanwhile")))
    (conflict,) = both.pair.conflicts()
    assert (conflict["type"], conflict["loser_row"]["note"]) == ("insert_insert", "from london")
    both.pair.settle()
    assert both.london.row(11) == both.capetown.row(11) == ("meanwhile", False)


def test_a_row_inserted_where_one_was_removed_behind_our_back_is_not_overwritten(shops: MakeShops) -> None:
    """What the shadow remembers of the removed row must not be taken for the row that was locked."""
    both = shops()
    both.capetown.site.run("DELETE FROM customer WHERE id = 1")
    both.london.update(1, "from london")
    both.pair.run("forward", at=At("judge", lambda: both.capetown.insert(1, "meanwhile")))
    both.pair.settle()
    assert both.agree
    (conflict,) = both.pair.conflicts()
    assert {conflict[side]["note"] for side in SIDES} == {"from london", "meanwhile"}


def test_an_edit_whose_mark_is_old_is_not_sent_yet_never_overwritten_silently(shops: MakeShops) -> None:
    """F21: the application breaks its promise. What it wrote stands in the log when it loses."""
    both = shops()
    both.capetown.site.as_application(
        "UPDATE customer SET note = 'unmarked' WHERE id = 1",
        "INSERT INTO customer VALUES (11, 'imported', '2020-01-01', false)",
    )
    both.pair.run("reverse")
    assert both.london.row(1) == ("common", False)
    both.london.update(1, "from london")
    both.london.insert(11, "from london")
    both.pair.settle()
    assert both.agree
    losers = {(row["type"], row["loser_row"]["note"]) for row in both.pair.conflicts()}
    assert losers == {("update_update", "unmarked"), ("insert_insert", "imported")}


def test_an_edit_after_its_row_was_registered_travels_under_its_own_version(shops: MakeShops) -> None:
    """No version holds one content here and another there: the run leaves the row to the next one."""
    both = shops()
    both.london.update(1, "registered")
    report = both.pair.run("forward", at=At("snapshot", lambda: both.london.update(1, "a moment later")))
    assert report.total("acquired") == 0
    both.pair.run("forward")
    assert both.capetown.row(1) == ("a moment later", False)
    assert both.pair.conflicts() == []


def test_an_edit_without_a_mark_does_not_hold_back_the_marked_one_before_it(shops: MakeShops) -> None:
    """The row was registered, the run failed, and the row waits: it is looked at again, whatever its mark says."""
    both = shops(marks=MARKS.model_copy(update={"tolerance": 0.2}))
    both.london.update(1, "marked")
    with pytest.raises(ConnectionError):
        both.pair.run("forward", at=At("snapshot", fail))
    time.sleep(1.5)
    both.pair.run("reverse")
    both.london.site.as_application("UPDATE customer SET note = 'unmarked' WHERE id = 1")
    both.pair.run("forward")
    assert both.capetown.row(1) == ("unmarked", False)


def fail() -> None:
    raise ConnectionError


def test_a_transaction_that_commits_late_arrives(shops: MakeShops) -> None:
    """T02, S4-074: marked before the last look, committed after it."""
    both = shops()
    with both.london.site.log_in("postgres", autocommit=False) as late:
        late.execute(both.london.updating(1, "late").encode())
        both.pair.settle()
        assert both.capetown.row(1) == ("common", False)
    both.pair.settle()
    assert both.capetown.row(1) == ("late", False)


def test_the_last_look_does_not_pass_a_transaction_that_is_still_writing(shops: MakeShops) -> None:
    """T02, the second remedy: a writer that outlasts the tolerance is waited for, and forgotten when it ends."""
    both = shops(marks=MARKS.model_copy(update={"tolerance": 0.2}))
    look = "SELECT registered FROM concord.replicated_table"
    both.pair.settle()
    with both.london.site.log_in("postgres", autocommit=False) as long:
        long.execute(both.london.updating(1, "after a long while").encode())
        both.pair.run("forward")
        held = both.london.site.value(look)
        time.sleep(1.5)
        both.pair.run("forward")
        assert both.london.site.value(look) == held
    both.pair.run("forward")
    assert both.capetown.row(1) == ("after a long while", False)
    assert both.london.site.value(look) > held


def test_what_was_being_written_while_the_sites_were_declared_equal_arrives(shops: MakeShops) -> None:
    """T02: marked longer ago than the tolerance, written at once, committed after the first look."""
    both = shops()
    for site in both.pair.sites:
        site.run(
            "DELETE FROM concord.link_state",
            f"DELETE FROM {SHADOW}",
            "UPDATE concord.replicated_table SET registered = NULL",
        )
    with both.london.site.log_in("postgres", autocommit=False) as late:
        late.execute("UPDATE customer SET note = 'late', updated_at = now() - interval '1 hour' WHERE id = 1")
        declare_equal(both.pair.job())
        both.pair.settle()
        assert both.capetown.row(1) == ("common", False)
    both.pair.settle()
    assert both.capetown.row(1) == ("late", False)
    assert both.london.site.value("SELECT registered FROM concord.replicated_table") > 0


def test_a_clock_that_was_set_back_does_not_hide_what_is_edited_from_then_on(shops: MakeShops) -> None:
    both = shops()
    look = "SELECT registered FROM concord.replicated_table"
    both.london.site.run(
        "UPDATE concord.replicated_table SET registered = registered + 3600 * 1000000::bigint"
    )
    ahead = both.london.site.value(look)
    both.london.update(1, "after the clock was set back")
    both.pair.run("forward")
    assert both.capetown.row(1) == ("after the clock was set back", False)
    assert both.london.site.value(look) < ahead


def test_the_report_states_the_tolerance(shops: MakeShops) -> None:
    """S4-074."""
    both = shops()
    both.london.update(1, "from london")
    assert carried(both.pair.run("forward")).tolerance == 900


def test_registering_follows_the_edits_and_not_the_size_of_the_table(shops: MakeShops) -> None:
    both = shops(common="SELECT n, 'common', '2026-01-02 03:04:05+00' FROM generate_series(1, 20000) n")
    for site in both.pair.sites:
        site.run("VACUUM ANALYZE")
    both.pair.settle()
    before = [scanned(site) for site in both.pair.sites]
    both.london.update(1, "from london")
    both.capetown.update(2, "from cape town")
    both.pair.settle()
    assert both.london.row(2) == ("from cape town", False)
    assert [scanned(site) for site in both.pair.sites] == before


def scanned(site: Site) -> list[tuple[Any, ...]]:
    """Rows read by walking a whole table, so far."""
    site.run("SELECT pg_stat_force_next_flush()")
    return site.rows(
        "SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE relname LIKE '%customer' ORDER BY relname"
    )


def test_a_flagged_row_goes_everywhere_when_every_link_has_passed_it(shops: MakeShops) -> None:
    """S1-38 to S1-41: its tombstone and the row itself, at both sites, and not a run earlier."""
    both = shops()
    both.london.delete(1)
    both.london.delete(2)
    assert removed(both) == [0, 0]
    both.pair.run("forward")
    assert removed(both) == [0, 0]
    assert both.capetown.row(1) == ("common", True)
    both.pair.run("reverse")
    both.capetown.bring_back(2, "again")
    assert removed(both) == [1, 1]
    assert both.london.row(1) is both.capetown.row(1) is None
    assert both.london.row(2) == ("common", True)
    both.pair.settle()
    assert both.agree
    assert both.london.row(2) == ("again", False)
    both.london.insert(1, "a new one")
    both.pair.settle()
    assert both.capetown.row(1) == ("a new one", False)
    assert both.pair.conflicts() == []
    quiet(both)


def test_a_flagged_row_that_another_refers_to_stays(shops: MakeShops) -> None:
    both = shops()
    both.capetown.site.run(
        "CREATE TABLE invoice (id int PRIMARY KEY, customer int REFERENCES customer)",
        f"GRANT SELECT ON invoice TO {APPLIER}",
        "INSERT INTO invoice VALUES (1, 1)",
    )
    both.london.delete(1)
    both.pair.settle()
    assert removed(both) == [0, 0]
    both.capetown.site.run("DELETE FROM invoice")
    assert removed(both) == [1, 1]


def test_a_flagged_row_that_was_edited_since_stays_until_every_site_has_the_edit(shops: MakeShops) -> None:
    both = shops()
    both.london.delete(1)
    both.pair.settle()
    both.london.update(1, "why it was deleted")
    assert removed(both) == [0, 0]
    assert both.london.row(1) == ("why it was deleted", True)
    both.pair.settle()
    assert both.capetown.row(1) == ("why it was deleted", True)
    assert removed(both) == [1, 1]


def test_a_flagged_row_that_is_brought_back_while_its_tombstone_goes_stays(
    shops: MakeShops, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is looked at once more under its lock."""
    both = shops()
    both.london.delete(1)
    both.pair.settle()

    def publish(*agreed: Any) -> None:
        tombstone_agreement.publish(*agreed)
        both.capetown.bring_back(1, "again")

    monkeypatch.setattr("concord.databases.postgresql.tombstones.publish", publish)
    assert removed(both) == [1, 0]
    both.pair.settle()
    assert both.london.row(1) == both.capetown.row(1) == ("again", False)
    assert both.pair.conflicts() == []


def removed(both: Shops) -> list[int]:
    ends = zip(both.pair.sites, both.pair.sites[::-1], ("forward", "reverse"), strict=True)
    sites = [
        CarryingSite(
            site.access,
            {table.name: {f"{SYNCHRONIZATION}/{direction}": peer.name} for table in both.pair.tables},
            both.pair.tables,
        )
        for site, peer, direction in ends
    ]
    reports = clean(sites, dry_run=False, now_us=time.time_ns() // 1000, min_age_us=0).tables
    assert [report.problem for report in reports] == [None, None]
    return [report.removed for report in reports]


def test_applications_read_a_view_without_the_deleted_rows(shops: MakeShops) -> None:
    """S1-26."""
    both = shops(marks=MARKS.model_copy(update={"view": LIVE}))
    both.london.delete(1)
    both.pair.settle()
    for shop in both.both:
        with shop.site.log_in(APPLICATION) as application:
            seen = application.execute("SELECT count(*), min(id) FROM customer_live").fetchone()
        assert seen == (9, 2)


def test_a_column_renamed_under_the_view_is_refused_until_the_view_is_made_anew(shops: MakeShops) -> None:
    both = shops(marks=MARKS.model_copy(update={"view": LIVE}))
    london = both.london.site
    london.run("ALTER TABLE customer RENAME COLUMN note TO remark")
    said = check([installation(london, both.pair.tables)])
    assert any("DROP VIEW public.customer_live, and run `provision`" in problem for problem in said), said


def test_rows_edited_shortly_before_they_were_declared_equal_are_common_history(shops: MakeShops) -> None:
    """Their marks are younger than the tolerance, yet nobody has edited them since."""
    both = shops(common=f"SELECT 1, 'common', '{pendulum.now('UTC')}'")
    assert both.pair.run("forward").total("acquired") == both.pair.run("reverse").total("acquired") == 0


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


EXAMPLES = 12
STEPS = [
    *itertools.product((0, 1), ("insert", "update", "update", "update", "delete", "bring_back")),
    *((place, "run") for place in (0, 1) * 3),
]


class Story:
    """What was done to one key, and which edit each edit has read: what may lose, and what must not."""

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


def test_the_worked_example_of_the_document(request: pytest.FixtureRequest, sites: Bare) -> None:
    """docs/marks.md says what happens; here it does."""
    text = (PROJECT / "docs" / "marks.md").read_text()
    said = dict(re.findall(r"```(sql [a-z ]+|yaml)\n(.*?)```", text, re.DOTALL))
    (entry,) = (TableSettings.model_validate(each) for each in yaml.safe_load(said["yaml"]))
    tables = (entry.replicated(Policy()),)
    for site in sites.sites:
        site.run(said[f"sql {site.name}"])
    provision(sites.installations(tables))
    pair = Pair(*sites.sites, tables, lambda: request.getfixturevalue("spark"))
    declare_equal(pair.job())
    for site in sites.sites:
        site.run(said[f"sql {site.name} edit"])
    pair.settle()
    for site in sites.sites:
        assert site.rows(said["sql both"]) == [(2, "Grace Hopper")]
        assert site.value("SELECT is_deleted FROM customer WHERE id = 1")
    assert pair.london.value("SELECT updated_at::text FROM customer WHERE name = 'Ada'") is not None
    assert check(sites.installations(tables)) == []
