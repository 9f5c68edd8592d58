"""Rows go from one database's COPY into another's staging, whole, or none of them, in the link's snapshot."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from traceback import format_exception

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concord.databases.contract.reading import Part, Reading, Relayed
from concord.databases.postgresql.facts.connection import conninfo
from concord.databases.postgresql.sites.ends import Source, Target
from concord.databases.postgresql.sites.link_source import LinkSource, between
from concord.databases.postgresql.write.relay import BLOCK, Relay
from concord.messages.errors import LinkFailed, PrivilegeMissing, SiteUnavailable
from concord.transmission.route import Route
from tests.conftest import ServerOf
from tests.given.fixtures import MakePair
from tests.given.site import PASSWORD
from tests.given.two_sites import Pair

VERSION = "'london#1' AS origin, 1::int8 AS changed_at, 0 AS derived, '{}'::text AS vector"
SCHEMA = (
    "c0 int, c1 string, c2 binary, origin string, changed_at bigint, derived int, vector string, deleted boolean,"
    " born boolean, out_of_scope boolean"
)


def relay(part: Part, attempt: int) -> Relayed:
    with Relay() as stage:
        return stage(part, attempt)


class Road:
    """From London into a staging table of Cape Town's."""

    def __init__(self, sites: Pair) -> None:
        self.sites, self.job = sites, sites.job()
        self.source, self.target = Source(self.job), Target(self.job)
        (shape,), _ = self.target.inspect(sites.tables)
        self.place = self.target.create_staging(shape, 0)

    def close(self) -> None:
        self.target.drop_staging()
        self.source.close()
        self.target.close()

    def part(self, query: str) -> Part:
        login = conninfo(self.job.source.reader, "concord read")
        reading = Reading(login, (), (query,), SCHEMA)
        (part,) = Route(reading, self.place).parts(self.target.staging_login())
        return part

    def query(self, rows: str) -> str:
        """`rows` are a relation of c0, c1, c2, deleted and out_of_scope."""
        return f"SELECT c0, c1, c2, {VERSION}, deleted, true AS born, out_of_scope FROM {rows}"

    def relayed(self, rows: str, attempt: int = 7) -> Relayed:
        return relay(self.part(self.query(rows)), attempt)

    def staged(self, columns: str = "c0, c1, c2") -> list[tuple[object, ...]]:
        return self.sites.capetown.rows(f"SELECT {columns} FROM {self.place.sql} ORDER BY 1")


@pytest.fixture
def road(pair: MakePair) -> Iterator[Road]:
    made = Road(pair("CREATE TABLE page (id int PRIMARY KEY, label text, picture bytea)"))
    yield made
    made.close()


def test_each_row_simply_applies_under_the_number_of_the_attempt(road: Road) -> None:
    # F57
    row = "(VALUES (1, 'a', ''::bytea, false, false)) x (c0, c1, c2, deleted, out_of_scope)"
    assert road.relayed(row) == Relayed(attempt=7, rows=1, removals=0, bytes=road.relayed(row, 8).bytes)
    found = road.staged("attempt, verdict, origin, changed_at, derived, vector, deleted, born, out_of_scope")
    version = ("apply", "london#1", 1, 0, "{}", False, True, False)
    assert found == [(7, *version), (8, *version)]


def test_it_is_told_how_many_rows_of_the_attempt_may_take_a_row_away(road: Road) -> None:
    # F95: and no other attempt's
    every = (
        "(VALUES (1, true, false), (2, false, true), (3, true, true), (4, false, false), (5, false, NULL))"
    )
    rows = (
        f"(SELECT x, 'a' AS c1, NULL AS c2, deleted, out_of_scope FROM {every} x (x, deleted, out_of_scope))"
    )
    for attempt in (1, 2):
        relayed = road.relayed(f"{rows} y (c0, c1, c2, deleted, out_of_scope)", attempt)
        assert (relayed.rows, relayed.removals) == (5, 3)


def test_no_row_is_staged_where_there_is_none(road: Road) -> None:
    none = "(SELECT 1, 'a', NULL, true, true WHERE false) x (c0, c1, c2, deleted, out_of_scope)"
    relayed = road.relayed(none)
    assert (relayed.rows, relayed.removals, road.staged()) == (0, 0, [])


def test_rows_are_staged_in_the_types_of_staging_whatever_the_query_has(road: Road) -> None:
    # Binary, the number 1 would arrive as another number, and this document with a byte before it.
    row = "(VALUES (1::int8, '{\"a\": 1}'::jsonb, ''::bytea, false, false)) x (c0, c1, c2, deleted, out_of_scope)"
    road.relayed(row)
    assert road.staged() == [(1, '{"a": 1}', b"")]


def test_what_goes_from_server_to_server_is_staged_as_what_it_is_and_what_goes_through_arrow_as_text(
    pair: MakePair,
) -> None:
    # A cast of each value, twice, would be most of what the write does before it writes.
    sites = pair(
        "CREATE DOMAIN amount AS numeric",
        "CREATE TABLE page (a timestamptz(3), b numeric(8,2), c jsonb, d uuid[], e amount, f interval,"
        " id int PRIMARY KEY)",
    )
    target = Target(sites.job())
    (shape,), _ = target.inspect(sites.tables)
    columns = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "vector"]
    staged = [target.create_staging(each, ordinal) for ordinal, each in enumerate((shape.relayed, shape))]
    types = [[each.types[name] for name in columns] for each in staged]
    target.drop_staging()
    target.close()
    assert types == [
        ["timestamptz", "numeric", "jsonb", "text", "text", "text", "int4", "jsonb"],
        ["text", "text", "text", "text", "text", "text", "int4", "text"],
    ]


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.none() | TEXTS, st.none() | st.binary(), st.integers(0, 2 * BLOCK)),
        min_size=1,
        max_size=6,
    )
)
def test_texts_and_bytes_arrive_as_they_are_however_large(
    road: Road, rows: list[tuple[str | None, bytes | None, int]]
) -> None:
    road.sites.london.run("DELETE FROM page")
    for number, (text, octets, more) in enumerate(rows):
        road.sites.london.connection.execute(
            "INSERT INTO public.page VALUES (%s, %s, %s || decode(repeat('00', %s), 'hex'))",
            (number, text, octets, more),
        )
    whole = [tuple(row) for row in road.sites.london.rows("SELECT id, label, picture FROM page ORDER BY id")]
    road.sites.capetown.run(f"TRUNCATE {road.place.sql}")
    columns = (
        "(SELECT id, label, picture, false, false FROM public.page) x (c0, c1, c2, deleted, out_of_scope)"
    )
    assert road.relayed(columns).rows == len(rows)
    assert road.staged() == whole


def test_the_link_is_to_be_tried_again_when_its_snapshot_has_ended(road: Road) -> None:
    # F06
    row = "SELECT 1 AS c0"
    with road.source.cut() as cut:
        (shape,), _ = road.source.inspect(road.sites.tables)
        reading = road.source.readers(shape, "1:1:", None, 1, cut)
    part = replace(road.part(row), reading=reading)
    with pytest.raises(SiteUnavailable, match=r"^public\.page: the link's cut has ended: "):
        relay(part, 1)
    assert road.staged() == []


def test_a_reader_in_another_snapshot_stages_nothing(road: Road) -> None:
    # F06: a torn read would send one version's row under another's
    part = road.part(
        road.query("(VALUES (1, 'a', NULL, false, false)) x (c0, c1, c2, deleted, out_of_scope)")
    )
    elsewhere = replace(part.reading, position="1:1:", position_query="SELECT '2:2:'")
    with pytest.raises(SiteUnavailable, match=r"^public\.page: a reader could not join the link's cut$"):
        relay(replace(part, reading=elsewhere), 1)
    assert road.staged() == []


def test_what_relays_between_open_ends_reads_in_the_sources_cut(road: Road) -> None:
    road.sites.london.run("INSERT INTO page VALUES (1, 'as it was', NULL)")
    rows = "(SELECT id, label, picture, false, false FROM public.page) x (c0, c1, c2, deleted, out_of_scope)"
    source = LinkSource(road.job)
    try:
        with source.cut():
            road.sites.london.run("UPDATE page SET label = 'as it is'", "INSERT INTO page VALUES (2)")
            with between(source, road.target) as stage:
                stage(road.part(road.query(rows)), 1)
        with pytest.raises(AssertionError, match="no cut is open"):
            between(source, road.target)
    finally:
        source.close()
    assert road.staged() == [(1, "as it was", None)]


#: A column that the source cannot read once it has sent some rows.
FAILING = "(CASE WHEN n < 5000 THEN 'false' ELSE 'secret' END)::bool"
SERIES = f"(SELECT n, 'a', NULL, {FAILING}, false FROM generate_series(1, 9000) n) x"


@pytest.mark.parametrize("private", [False, True])
def test_what_the_source_refuses_names_the_table_and_no_value_of_a_private_one(
    road: Road, server_of: ServerOf, private: bool
) -> None:
    # PostgreSQL quotes the value, and a COPY that ends tells the other server why
    logs = {server_of(site.name).log for site in road.sites.sites}
    logged = {log: log.stat().st_size for log in logs}
    part = replace(road.part(road.query(f"{SERIES} (c0, c1, c2, deleted, out_of_scope)")), private=private)
    with pytest.raises(LinkFailed, match=r"^public\.page: its rows could not be moved: ") as raised:
        relay(part, 1)
    whole = "".join(format_exception(raised.value))
    assert ("secret" in whole) is not private
    assert raised.value.message.count("SQLSTATE") == private
    said = "".join(log.read_bytes()[before:].decode() for log, before in logged.items())
    assert "COPY from stdin failed: error from Python: SourceFailed - the source sends no more" in said
    assert said.count('"secret"') == 1, "by the source, which knows it"
    assert road.staged() == []


def test_a_row_that_postgresql_does_not_send_is_named_by_the_key_of_the_largest(road: Road) -> None:
    road.sites.london.run("CREATE SEQUENCE asked", "GRANT USAGE ON SEQUENCE asked TO public")
    once = "CASE WHEN nextval('public.asked') = 1 THEN 1 << 30 ELSE 10 END"
    row = f"(SELECT n, repeat('x', {once} * n), NULL, false, false FROM generate_series(1, 2) n)"
    part = replace(road.part(road.query(f"{row} x (c0, c1, c2, deleted, out_of_scope)")), key=("c0",))
    with pytest.raises(LinkFailed) as refused:
        relay(part, 1)
    assert refused.value.message == (
        "public.page: a row is larger than PostgreSQL sends, which is 1 GB: requested length too large."
        " The largest has the key 2 and 49 bytes. Shorten the row or delete it at the site that sends it"
    )
    assert road.staged() == []


def test_the_link_is_to_be_tried_again_when_the_source_ends_amid_its_rows(road: Road) -> None:
    ends = "(CASE WHEN n < 5000 THEN false ELSE pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid()) END)"
    series = f"(SELECT n, 'a', NULL, {ends}, false FROM generate_series(1, 9000) n) x"
    with pytest.raises(SiteUnavailable, match=r"^public\.page: "):
        road.relayed(f"{series} (c0, c1, c2, deleted, out_of_scope)")
    assert road.staged() == []


def test_what_may_not_be_read_is_to_be_granted(road: Road) -> None:
    with pytest.raises(PrivilegeMissing, match=r"^public\.page: permission denied .* Run `provision`"):
        road.relayed(
            "(SELECT 1, rolname, NULL, false, false FROM pg_catalog.pg_authid) x (c0, c1, c2, deleted, out_of_scope)"
        )


def test_a_name_of_several_lines_is_told_in_one(road: Road) -> None:
    part = replace(road.part("SELECT 1 / 0 AS c0"), table="public.we\nconcord.messages.errors.LeaseLost: ird")
    with pytest.raises(LinkFailed) as raised:
        relay(part, 1)
    assert raised.value.message.startswith(
        "public.we concord.messages.errors.LeaseLost: ird: its rows could not be moved"
    )
    assert "\n" not in raised.value.message


@pytest.mark.spark
def test_a_column_is_the_same_however_its_values_travel(road: Road) -> None:
    """Else none of them were found again among those that a constraint or a mapping names."""
    (shape,), _ = road.target.inspect(road.sites.tables)
    assert shape.relayed.is_relayed
    assert not shape.is_relayed
    assert shape.relayed.columns == shape.columns


@pytest.mark.usefixtures("classic")
def test_no_file_holds_a_login_when_spark_stages(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    # pyspark writes the data of a job to a file, and takes it away again
    written: list[bytes] = []
    remove = os.unlink

    def look(path: str) -> None:
        written.append(Path(path).read_bytes())
        remove(path)

    sites = road.sites
    spark = sites.spark()
    monkeypatch.setattr(os, "unlink", look)
    sites.london.run("INSERT INTO page SELECT generate_series(1, 50000)")
    assert sites.run(spark_from=0).total("applied") == 50_000
    assert PASSWORD.encode() not in b"".join(written)
    spark.sparkContext.parallelize([PASSWORD], 1).count()
    assert PASSWORD.encode() in b"".join(written), "this is how it would be seen"
