"""Spark maps many rows, the driver few: both forms are one, and both keep the order (S0-06)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from concord.databases.registry import dialect
from concord.messages.errors import EntryRefused
from concord.messages.pace import silent
from concord.tables.manipulation import AnyOperation, Manipulation
from concord.tables.row_mapping import Columns, RowMapping, in_the_driver
from concord.transactional.replicate import replicate
from concord.values.text_form import form_of
from spark_jobs.replicate import mapped, work
from spark_jobs.steps.mapped_texts import mapped_texts
from tests.given.mapped_replication import account, begin_mapped, expected, kept
from tests.given.replicated_sites import Replicated
from tests.tables.mappings import OPERATIONS, texts

pytestmark = pytest.mark.spark

Make = Callable[..., Replicated]
#: Types into which a text that a mapping has made may not fit.
FORMS = {name: form_of(kind) for name, kind in {"w": "varchar(6)", "e": "varchar(3)", "b": "integer"}.items()}


def columns(site: str, names: tuple[str, ...], operations: tuple[AnyOperation, ...]) -> Columns:
    forms = {name: FORMS.get(name) for name in names}
    return Columns(site, names, Manipulation(operations=operations), forms, names[:1])


def mapping(operation: AnyOperation, *, out: bool) -> RowMapping:
    """A key beside an operation's columns: on its way from the site that has it, or to that site."""
    canonical, own = ("key", *operation.canonical), ("key", *operation.own)
    if out:
        return RowMapping(columns("london", own, (operation,)), columns("capetown", canonical, ()))
    return RowMapping(columns("london", canonical, ()), columns("capetown", own, (operation,)))


CHANGING = {
    (name, out): mapping(operation, out=out)
    for name, operation in OPERATIONS.items()
    for out in (True, False)
    if mapping(operation, out=out).changed
}


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(*[st.none() | texts()] * 4), min_size=50, max_size=150))
@pytest.mark.parametrize("wanted", CHANGING, ids=lambda each: f"{each[0]} {'out' if each[1] else 'in'}")
def test_both_forms_map_and_refuse_the_same_rows_in_the_same_words(
    spark: SparkSession, wanted: tuple[str, bool], rows: list[tuple[str | None, ...]]
) -> None:
    about = CHANGING[wanted]
    cut = [row[: len(about.source.names)] for row in rows]
    found, reference = mapped_texts(spark, about, cut), in_the_driver(about, cut)
    assert [each.refused for each in found] == [each.refused for each in reference]
    for one, other in zip(found, reference, strict=True):
        if one.refused is None:
            assert one == other


def run(sites: Replicated, spark: SparkSession, spark_from: int, **changed: Any) -> Any:
    mapper = partial(mapped, lambda: spark, spark_from)
    return replicate(sites.job(**changed), dialect, mapper=mapper)


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    made = begin_mapped(replicated)
    made.london.run(*(account(key, tail=str(key)) for key in range(1, 30)))
    return made


def test_a_copy_and_the_log_after_it_are_mapped_by_spark_in_order(
    sites: Replicated, spark: SparkSession
) -> None:
    run(sites, spark, 0, initialize=True)
    assert kept(sites) == expected(sites)
    sites.london.run(
        *(f"UPDATE account SET tail = tail * 2, status = 'I' WHERE id % {n} = 0" for n in range(1, 6)),
        "UPDATE account SET id = id + 100, last = 'King'",
        "DELETE FROM account WHERE id % 7 = 0",
        account(1),
    )
    report = run(sites, spark, 0)
    assert (report.entries, report.conversions) == (8, 0)
    assert kept(sites) == expected(sites)


def test_a_row_that_does_not_fit_stops_it_as_the_driver_does(sites: Replicated, spark: SparkSession) -> None:
    run(sites, spark, 0, initialize=True)
    sites.london.run(
        "UPDATE account SET status = 'I' WHERE id = 1", "UPDATE account SET status = 'X' WHERE id > 3"
    )
    said = set()
    for spark_from in (0, 10**9):
        with pytest.raises(EntryRefused) as caught:
            run(sites, spark, spark_from)
        said.add(caught.value.message)
    [message] = said
    assert "at operation 1 of 26 (update of public.account): it does not fit the mapping" in message
    assert sites.capetown.value("SELECT state::text FROM account WHERE id = 1") == "inactive"


def test_spark_is_asked_from_so_many_rows_of_a_table_on(sites: Replicated, spark: SparkSession) -> None:
    asked = list[int]()

    def begun() -> SparkSession:
        asked.append(1)
        return spark

    replicate(sites.job(initialize=True), dialect, mapper=partial(mapped, begun, 30))
    assert not asked
    sites.london.run("UPDATE account SET note = 'n'")
    replicate(sites.job(), dialect, mapper=partial(mapped, begun, 29))
    assert asked == [1]


def test_the_driver_maps_all_rows_unless_the_configuration_says_from_how_many_spark_does(
    sites: Replicated, spark: SparkSession
) -> None:
    asked = list[int]()

    def begun() -> SparkSession:
        asked.append(1)
        return spark

    work(sites.job(initialize=True), lambda step: None, silent, spark=begun)
    assert kept(sites) == expected(sites)
    assert not asked
    sites.settings = {**(sites.settings or {}), "spark_from": 1}
    sites.london.run("UPDATE account SET note = 'n'")
    work(sites.job(), lambda step: None, silent, spark=begun)
    assert asked == [1]


def test_a_table_that_is_the_same_at_both_sites_goes_past_spark(
    sites: Replicated, spark: SparkSession
) -> None:
    run(sites, spark, 0, initialize=True)
    sites.london.run("INSERT INTO seat SELECT n, n FROM generate_series(1, 100) n")

    def unwanted() -> SparkSession:
        raise AssertionError("nothing of it is mapped")

    assert replicate(sites.job(), dialect, mapper=partial(mapped, unwanted, 0)).entries == 1
    assert sites.rows("seat")[0] == sites.rows("seat")[1]
