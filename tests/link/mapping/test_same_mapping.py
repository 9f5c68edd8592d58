"""The three forms of a mapping are one: pure Python, Spark columns, SQL (S1-34)."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from concord.databases.postgresql.rows.canonical import canonical_texts
from concord.tables.manipulation import AnyOperation, Manipulation
from concord.values.text_form import form_of
from spark_jobs.steps.manipulate import _apply, fits
from tests.conftest import Database
from tests.tables.mappings import NEAR, OPERATIONS, TYPES, texts

pytestmark = pytest.mark.spark

Row = tuple[str | None, str | None, str | None]
NAMES = ("t0", "t1", "t2")
ROWS: list[Row] = [
    (one, other, NEAR[index % len(NEAR)])
    for index, (one, other) in enumerate(product((*NEAR, None), repeat=2))
] + [("a", "b", None), (None, None, None), ("a", "b", "c"), ("", "", "")]
DIRECTIONS = [(name, operation, out) for name, operation in OPERATIONS.items() for out in (True, False)]


def expected(operation: AnyOperation, row: Row, *, out: bool) -> tuple[str | None, ...]:
    values = row[: len(operation.own if out else operation.canonical)]
    return operation.to_canonical(values) if out else operation.to_own(values)


def computed(operation: AnyOperation, *, out: bool) -> Column:
    taken = [F.col(name) for name in NAMES[: len(operation.own if out else operation.canonical)]]
    return F.array(*_apply(operation, taken, out=out), F.lit("end"))


def check_in_spark(spark: SparkSession, rows: Sequence[Row]) -> None:
    frame = spark.createDataFrame(rows, "t0 string, t1 string, t2 string")
    forms = {kind: form for kind in TYPES if (form := form_of(kind))}
    columns = [computed(operation, out=out).alias(f"{name} {out}") for name, operation, out in DIRECTIONS]
    columns += [fits(form, F.col("t0")).alias(kind) for kind, form in forms.items()]
    for row, found in zip(rows, frame.select(*columns).collect(), strict=True):
        for name, operation, out in DIRECTIONS:
            told = (name, out, row)
            assert (told, (*expected(operation, row, out=out), "end")) == (
                told,
                tuple(found[f"{name} {out}"]),
            )
        for kind, form in forms.items():
            assert (kind, row[0], row[0] is not None and form.fits(row[0])) == (kind, row[0], found[kind])


def test_spark_does_what_the_reference_does(spark: SparkSession) -> None:
    check_in_spark(spark, ROWS)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(*[st.none() | texts()] * 3), min_size=100, max_size=300))
def test_spark_does_what_the_reference_does_with_any_rows(spark: SparkSession, rows: list[Row]) -> None:
    check_in_spark(spark, rows)


def check_in_sql(connection: psycopg.Connection[tuple[object, ...]], rows: Sequence[Row]) -> None:
    connection.execute("CREATE TEMPORARY TABLE given (place int, t0 text, t1 text, t2 text) ON COMMIT DROP")
    with connection.cursor().copy("COPY given FROM STDIN") as copy:
        for place, row in enumerate(rows):
            copy.write_row((place, *row))
    for name, operation in OPERATIONS.items():
        manipulation = Manipulation(operations=(operation,))
        wanted = canonical_texts(manipulation, dict(zip(operation.own, NAMES, strict=False)))
        query = f"SELECT ARRAY[{', '.join(wanted.values())}]::text[] FROM given ORDER BY place"
        found = [tuple(row) for (row,) in connection.execute(query.encode())]  # type: ignore[misc, arg-type]
        for row, canonical in zip(rows, found, strict=True):
            own = dict(zip(operation.own, row, strict=False))
            if not manipulation.unfaithful(own, leaving=True):
                assert (name, row, canonical) == (name, row, expected(operation, row, out=True))


@pytest.fixture
def connection(database: Callable[[], Database]) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database().uri, autocommit=True) as made:
        yield made


def test_sql_brings_every_row_that_passes_the_proof_to_the_same_canonical_form(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    with connection.transaction():
        check_in_sql(connection, ROWS)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(*[st.none() | texts()] * 3), min_size=50, max_size=200))
def test_sql_brings_any_rows_that_pass_the_proof_to_the_same_canonical_form(
    connection: psycopg.Connection[tuple[object, ...]], rows: list[Row]
) -> None:
    with connection.transaction():
        check_in_sql(connection, rows)
