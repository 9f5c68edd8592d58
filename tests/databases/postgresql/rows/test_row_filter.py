"""A rendered filter says of every row what PostgreSQL says of the text that a person wrote."""

from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest
from hypothesis import given, settings
from psycopg import sql

from concord.databases.postgresql.facts.catalogue import Table, read_tables
from concord.databases.postgresql.facts.connection import connect
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.databases.postgresql.sites import preflight
from concord.jobs.site import Credentials
from concord.tables.replication_set import ReplicatedTable, TableName
from concord.tables.row_filter_text import parse_row_filter
from embedded.postgres import Server
from tests.tables.filters import TABLE, filters, rows

NAME = TableName(schema_name="public", name="filtered")


class Scene(NamedTuple):
    connection: psycopg.Connection[object]
    table: Table

    def shape(self, where: str) -> Shape:
        wanted = ReplicatedTable(table=NAME, where=parse_row_filter(where))
        return shape_of(wanted, "london", self.table)

    def keys(self, condition: str) -> list[object]:
        query = f"SELECT id FROM public.filtered t WHERE {condition} ORDER BY id"
        return [key for (key,) in self.connection.execute(query.encode())]  # type: ignore[misc]

    def problems(self, where: str) -> list[str]:
        wanted = ReplicatedTable(table=NAME, where=parse_row_filter(where))
        return [
            *preflight.table_problems("london", wanted, self.table),
            *preflight.filter_problems(self.connection, "london", wanted, self.table),
        ]


@pytest.fixture(scope="module")
def scene(server: Server) -> Iterator[Scene]:
    server.create_database("filter_conditions")
    credentials = Credentials(
        host=server.host,
        port=server.port,
        database="filter_conditions",
        user=server.superuser,
        password=server.password,  # type: ignore[arg-type]
    )
    with connect(credentials) as connection:
        connection.execute("SET search_path = public")
        connection.execute(TABLE.encode())
        with connection.cursor() as cursor, cursor.copy("COPY filtered FROM STDIN") as copy:
            for row in rows(seed=3, many=300):
                copy.write_row(row)
        yield Scene(connection, read_tables(connection, [NAME])[NAME])
    server.drop_database("filter_conditions")


@settings(max_examples=400)
@given(text=filters())
def test_the_condition_holds_for_the_rows_for_which_the_text_holds(scene: Scene, text: str) -> None:
    assert scene.problems(text) == []
    shape = scene.shape(text)
    inside = scene.keys(shape.in_scope("t"))
    assert inside == scene.keys(text)
    outside = scene.keys(f"NOT {shape.in_scope('t')}")
    assert sorted([*inside, *outside], key=str) == sorted(scene.keys("true"), key=str), "never unknown"


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("colour = 'red'", "filters by colour, which is no replicated column there"),
        ("whole = 'many'", 'invalid input syntax for type integer: "many"'),
        ("flag = 1", "operator does not exist"),
        ("word > 5", "operator does not exist"),
        ("day = 'today'", "'today', which is no fixed moment; write it as '2026-01-31'"),
        ("day > 'now'", "no fixed moment"),
        ("moment > '2026-01-01 10:00'", "no fixed moment; write it as '2026-01-31 17:30+00'"),
        ("whole LIKE 'x'", "operator does not exist"),
    ],
)
def test_what_a_site_cannot_compare_is_named_when_it_is_provisioned(
    scene: Scene, where: str, why: str
) -> None:
    (problem,) = scene.problems(where)
    assert problem.startswith("london: public.filtered ")
    assert why in problem


def test_texts_are_compared_byte_by_byte_whatever_the_locale(scene: Scene) -> None:
    shape = scene.shape("word < 'b'")
    assert 'COLLATE "C"' in shape.in_scope("t")


def test_nothing_of_the_text_is_pasted(scene: Scene) -> None:
    """Names are quoted and constants are literals, whatever stands in them."""
    shape = scene.shape('"Odd ""name""" = \'\'\'; DROP TABLE filtered; --\'')
    assert scene.keys(shape.in_scope("t")) == []
    assert sql.Identifier('Odd "name"').as_string(scene.connection) in shape.in_scope("t")
