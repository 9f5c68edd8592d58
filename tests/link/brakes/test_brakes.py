"""A link that would take too much away waits for a person: nothing is written, and an approved run carries all."""

import pytest
from pyspark.sql import SparkSession

from concord.messages.errors import BrakeHeld, SparkUnavailable
from concord.rules.brake import Approval, Brakes, Limit, headroom
from concord.tables.replication_set import ReplicatedTable, TableName
from spark_jobs.link import transmit
from tests.given.fixtures import MakePair
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

DDL = (
    "CREATE TABLE item (id int PRIMARY KEY, token text)",
    "CREATE TABLE other (id int PRIMARY KEY, token text)",
    "INSERT INTO item SELECT n, 'common' FROM generate_series(1, 1000) n",
)


def positions(sites: Pair) -> list[object]:
    return [site.rows("SELECT link, history FROM concord.link_state ORDER BY 1") for site in sites.sites]


def approved(error: BrakeHeld, up_to: int | None = None) -> tuple[Approval, ...]:
    """A person's answer to all that was held."""
    found = []
    for hold in error.facts["holds"]:  # type: ignore[attr-defined]
        count = headroom(hold["count"]) if up_to is None else up_to
        found.append(Approval(table=hold["table"], kind=hold["kind"], up_to=count, since=str(error.since)))
    return tuple(found)


def braked(sites: Pair, **brakes: object) -> None:
    table = ReplicatedTable(table=TableName(schema_name="public", name="item"))
    others = [each for each in sites.tables if each.name != "public.item"]
    sites.tables = (table.braked(Brakes.model_validate(brakes)), *others)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_mass_delete_is_held_whole_until_a_person_agrees_to_as_much(pair: MakePair, direction: str) -> None:
    sites = pair(*DDL)
    source, target = sites.sites if direction == "forward" else sites.sites[::-1]
    source.run("DELETE FROM item WHERE id <= 501", "INSERT INTO other VALUES (1, 'waits too')")
    before, known, written = target.rows("TABLE item ORDER BY 1"), positions(sites), target.writes()
    for _ in range(2):
        with pytest.raises(BrakeHeld, match=r"public\.item: 501 deletes of 1,000 rows: more than") as held:
            sites.run(direction)
    assert "python -m concord approve london_capetown" in held.value.message
    assert (target.rows("TABLE item ORDER BY 1"), target.rows("TABLE other")) == (before, [])
    control = ("concord.site", "concord.synchronization")
    changed = {table for table, count in target.writes().items() if count != written[table]}
    assert changed <= set(control)
    assert positions(sites) == known

    enough = approved(held.value)
    source.run("DELETE FROM item WHERE id <= 700")
    with pytest.raises(BrakeHeld, match="700 deletes of 1,000 rows"):
        sites.run(direction, approvals=enough)
    assert positions(sites) == known

    source.run("INSERT INTO item SELECT n, 'again' FROM generate_series(1, 100) n")
    report = sites.run(direction, approvals=enough)
    assert (carried(report, "public.item").applied, carried(report, "public.other").applied) == (700, 1)
    sites.settle()
    assert sites.equal
    assert not sites.conflicts()

    # Once used it is worth nothing: the link has gone on from where it was given.
    source.run("INSERT INTO item SELECT n, 'more' FROM generate_series(1001, 2000) n")
    sites.settle()
    source.run("DELETE FROM item")
    with pytest.raises(BrakeHeld, match="deletes of 1,400 rows"):
        sites.run(direction, approvals=enough)


def test_deletes_of_rows_that_the_target_has_not_are_no_harm(pair: MakePair) -> None:
    sites = pair(*DDL)
    sites.capetown.run("INSERT INTO item SELECT n, 'more' FROM generate_series(1001, 2200) n")
    sites.settle()
    for site in sites.sites:
        site.run("DELETE FROM item WHERE id <= 1000")
    sites.settle()
    assert sites.equal


def test_deletes_are_weighed_alone_and_only_those_that_win(pair: MakePair) -> None:
    sites = pair(*DDL)
    sites.london.run("DELETE FROM item WHERE id <= 600", "UPDATE item SET token = 'new' WHERE id > 600")
    sites.capetown.run("UPDATE item SET token = 'later' WHERE id <= 150")
    report = carried(sites.run())
    assert (report.applied, report.lost) == (450 + 400, 150)
    sites.run("reverse")
    assert sites.equal


def test_a_hold_is_told_though_spark_cannot_judge_first(pair: MakePair) -> None:
    def absent() -> SparkSession:
        raise SparkUnavailable

    sites = pair(*DDL)
    sites.london.run("DELETE FROM item")
    sites.capetown.run("UPDATE item SET token = 'later' WHERE id = 1")
    with pytest.raises(BrakeHeld, match="1,000 deletes of 1,000 rows"):
        transmit(sites.job(spark_from=10_000), absent)


def test_changes_are_held_where_a_limit_is_set_and_inserts_never(pair: MakePair) -> None:
    sites = pair(*DDL)
    sites.london.run("INSERT INTO item SELECT n, 'new' FROM generate_series(1001, 9000) n")
    braked(sites, changes=Limit(share=0.9, rows=400), smallest_table=1000)
    sites.run()
    sites.capetown.run("UPDATE item SET token = 'everything' WHERE id <= 401")
    with pytest.raises(BrakeHeld, match=r"public\.item: 401 changes of [\d,]+ rows") as held:
        sites.run("reverse")
    assert sites.london.value("SELECT count(*) FROM item WHERE token = 'everything'") == 0
    sites.run("reverse", approvals=approved(held.value))
    assert sites.equal


def test_a_plan_is_never_held_and_a_brake_can_be_taken_off(pair: MakePair) -> None:
    sites = pair(*DDL)
    sites.london.run("DELETE FROM item")
    assert carried(sites.run(plan_only=True)).applied == 1000
    with pytest.raises(BrakeHeld):
        sites.run()
    braked(sites, deletes=Limit())
    assert carried(sites.run()).applied == 1000
    assert sites.equal


def test_only_deletes_are_looked_up(pair: MakePair) -> None:
    sites = pair(*DDL)
    sites.london.run("UPDATE item SET token = 'everything'")
    assert "brake" not in sites.run().seconds
