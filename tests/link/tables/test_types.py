"""Every supported type arrives as it was written, byte for byte, in both directions and in the conflict log."""

import datetime
import json
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from concord.databases.postgresql.facts.types import AS_TEXT, NATIVE, ONE_IMAGE
from tests.conftest import Database
from tests.given.fixtures import MakePair
from tests.given.releases import have_pgvector
from tests.given.site import APPLIER
from tests.given.table_of_types import COLUMNS, LONGEST, SAMPLE, by_type, insert_samples
from tests.given.two_sites import carried
from tests.given.values_of_types import VALUES

pytestmark = pytest.mark.spark


#: The types that the embedded server cannot hold: it is built without libxml and without these extensions.
NOT_IN_THIS_SERVER = {"xml", "citext", "hstore", "ltree", "cube", "geometry", "geography"} | {
    *("ean13", "isbn", "isbn13", "ismn", "ismn13", "issn13", "upc"),
    *(() if have_pgvector() else ("vector", "halfvec", "sparsevec")),
}


def test_the_samples_cover_every_type_that_is_declared_supported(pair: MakePair) -> None:
    sites = pair(*SAMPLE)
    found = sites.london.rows(
        "SELECT t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
        " WHERE a.attrelid = 'sample'::regclass AND a.attnum > 0"
    )

    assert (NATIVE.keys() | AS_TEXT) - {name for (name,) in found} == NOT_IN_THIS_SERVER


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_every_value_of_every_type_arrives_byte_for_byte(pair: MakePair, direction: str) -> None:
    # S1-34, F20, F69, F80
    sites = pair(*SAMPLE)
    source, target = sites.sites if direction == "forward" else sites.sites[::-1]
    insert_samples(source, 1)

    report = sites.run(direction)

    assert carried(report).applied == LONGEST + 1
    assert by_type(target) == by_type(source)


@pytest.mark.parametrize("name", sorted(ONE_IMAGE))
def test_values_that_are_compared_by_value_differ_where_their_images_do(
    database: Callable[[], Database], name: str
) -> None:
    # F69
    with psycopg.connect(database().uri) as connection:
        (spelled,) = connection.execute("SELECT %s::regtype::text", [name]).fetchone() or ()
        values = ", ".join(f"(({value})::{name})" for value in (*VALUES[spelled], "NULL"))
        pairs = f"FROM (VALUES {values}) one (v), (VALUES {values}) other (v)"
        by_value, by_image = "one.v IS DISTINCT FROM other.v", "record_image_ne(ROW(one.v), ROW(other.v))"
        counted = f"SELECT count(*) FILTER (WHERE ({by_value}) <> {by_image}), count(*) {pairs}"
        found = connection.execute(counted.encode()).fetchone()
    assert found == (0, (len(VALUES[spelled]) + 1) ** 2)


def test_every_value_can_become_every_other_and_null(pair: MakePair) -> None:
    sites = pair(*SAMPLE)
    insert_samples(sites.london, 1)
    sites.run()
    sites.london.run("UPDATE sample SET id = id + 100")
    insert_samples(sites.london, 1, shifted=1)

    sites.run()

    assert by_type(sites.capetown) == by_type(sites.london)


def test_a_deleted_row_of_every_type_is_deleted_at_the_other_site(pair: MakePair) -> None:
    # A domain that refuses NULL must not stop a delete, which brings no values.
    sites = pair(*SAMPLE)
    insert_samples(sites.london, 1)
    sites.run()
    sites.london.run("DELETE FROM sample WHERE id <= 3")

    report = sites.run()

    assert carried(report).applied == 3
    assert by_type(sites.capetown) == by_type(sites.london)


def test_the_losers_image_in_the_conflict_log_casts_back_to_every_value(pair: MakePair) -> None:
    # F75
    sites = pair(*SAMPLE)
    insert_samples(sites.london, 1)
    sites.settle()
    sites.london.run("CREATE SCHEMA kept", "UPDATE sample SET v0 = 7, v5 = NULL")
    sites.london.run("CREATE TABLE kept.sample AS SELECT * FROM sample")
    time.sleep(0.01)
    sites.capetown.run("UPDATE sample SET v0 = 8")

    sites.run("reverse")

    casts = ", ".join(f"(loser_row ->> '{name}')::{kind} AS {name}" for kind, name in COLUMNS.items())
    restored = f"SELECT (loser_row ->> 'id')::int AS id, {casts} FROM concord.conflict"
    differing = sites.london.rows(
        f"SELECT k.id FROM kept.sample k FULL JOIN ({restored}) r USING (id)"
        " WHERE record_image_ne(k, ROW(r.*)::kept.sample)"
    )
    assert differing == []
    assert sites.london.value("SELECT count(*) FROM concord.conflict") == LONGEST + 1


def test_a_numeric_key_keeps_the_form_in_which_it_was_written(pair: MakePair) -> None:
    # F42: 1.0 and 1.00 are one key with two forms
    sites = pair("CREATE TABLE account (id numeric PRIMARY KEY, note text)")
    sites.london.run("INSERT INTO account VALUES (1.0, 'a'), (1e3, 'b')")
    sites.run()
    sites.london.run("UPDATE account SET id = 1.00, note = 'c' WHERE id = 1")
    sites.settle()
    sites.capetown.run("UPDATE account SET id = 1.000 WHERE id = 1")
    sites.settle()

    assert sites.capetown.rows("SELECT id::text, note FROM account ORDER BY id") == [
        ("1.000", "c"),
        ("1000", "b"),
    ]
    assert sites.equal


def test_a_generated_column_is_computed_anew_and_an_identity_key_keeps_its_number(pair: MakePair) -> None:
    # F49
    sites = pair(
        "CREATE TABLE invoice (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, net numeric,"
        " gross numeric GENERATED ALWAYS AS (net * 1.20) STORED, number int GENERATED BY DEFAULT AS IDENTITY)"
    )
    sites.london.run(
        "INSERT INTO invoice (net) VALUES (10), (20.50)", "UPDATE invoice SET net = 30 WHERE id = 1"
    )
    sites.settle()

    assert sites.capetown.rows("SELECT id, net::text, gross::text, number FROM invoice ORDER BY id") == [
        (1, "30", "36.00", 1),
        (2, "20.50", "24.6000", 2),
    ]
    assert sites.equal


CHARACTERS = st.characters(exclude_characters="\x00", exclude_categories=["Cs"])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.text(CHARACTERS),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(CHARACTERS), inner),
)
RANDOM_ROW = st.tuples(
    st.text(CHARACTERS),
    st.binary(),
    st.floats(),
    st.floats(width=32),
    st.decimals().map(
        lambda number: Decimal("NaN") if number.is_nan() else number
    ),  # PostgreSQL knows one NaN
    st.integers(-(2**63), 2**63 - 1),
    st.datetimes(timezones=st.just(datetime.UTC)),
    st.timedeltas(),
    st.lists(st.none() | st.text(CHARACTERS)),
    DOCUMENTS.map(json.dumps),
)
NOISE_COLUMNS = "t, b, d, f, n, i, moment, span, list, doc"


def test_random_values_arrive_byte_for_byte(pair: MakePair) -> None:
    """Few examples of many rows each: every example costs one run of the link."""
    sites = pair(
        "CREATE TABLE noise (id serial PRIMARY KEY, t text, b bytea, d float8, f float4, n numeric, i int8,"
        " moment timestamptz, span interval, list text[], doc json)"
    )
    insert = f"INSERT INTO noise ({NOISE_COLUMNS}) VALUES ({', '.join(['%s'] * 10)})"

    @given(st.lists(RANDOM_ROW, min_size=10, max_size=40))
    @settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def arrive(random_rows: list[tuple[Any, ...]]) -> None:
        with sites.london.connection.cursor() as cursor:
            cursor.executemany(insert, random_rows)
        assert carried(sites.run()).applied == len(random_rows)

    arrive()

    whole = f"SELECT id, record_send(ROW({NOISE_COLUMNS})) FROM noise ORDER BY id"
    assert sites.capetown.rows(whole) == sites.london.rows(whole)


def test_settings_of_a_role_do_not_change_what_arrives(pair: MakePair) -> None:
    """F20: array_nulls off would turn a NULL element into text."""
    sites = pair("CREATE TABLE tag (id int PRIMARY KEY, names text[])")
    sites.london.run(f"ALTER ROLE {APPLIER} SET array_nulls = off")
    try:
        sites.london.run("INSERT INTO tag VALUES (1, ARRAY['x', NULL])")
        sites.settle()
    finally:
        sites.london.run(f"ALTER ROLE {APPLIER} RESET array_nulls")
    assert sites.capetown.rows("SELECT names FROM tag") == [(["x", None],)]
