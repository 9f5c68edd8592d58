"""Marks kept by the application on the row: no triggers, a tolerance, each site's precision and zone."""

import re
from typing import Any

import pendulum
import pytest
import yaml

from concord.configuration.settings import TableSettings
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.provisioning import check, provision
from concord.rules.policy import Policy
from concord.tables.replication_set import TableName
from tests.conftest import PROJECT
from tests.given.bare_sites import Bare, installation
from tests.given.fixtures import MakeShops
from tests.given.marked_sites import (
    LOCAL_MILLISECONDS,
    LOCAL_SECONDS,
    MARKS,
    MICROSECONDS,
    MILLISECONDS,
    SECONDS,
    Clock,
    Shops,
    quiet,
)
from tests.given.site import APPLICATION, Site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark
LIVE = TableName(schema_name="public", name="customer_live")


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
    # Ten thousand edits of a table of twice the size took a minute, as one sequential scan each; by key, three seconds.
    all_rows, many = 100_000, 10_000
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
