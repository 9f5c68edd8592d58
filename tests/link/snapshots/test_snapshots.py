"""Snapshots: read-only copies of any query's content at another site, replaced by each refresh (S4-005 to S4-026)."""

from typing import Any

import pytest

from concord.databases.postgresql.snapshots.query import rows_queries
from concord.messages.errors import CountMismatch, StructureChanged
from spark_jobs.snapshot import refresh
from tests.given.at_step import At
from tests.given.snapshot_sites import Copies, counts

pytestmark = pytest.mark.spark


def test_a_query_is_copied_into_a_table_made_with_its_layout_and_replaced_by_every_refresh(
    copies: Copies,
) -> None:
    """S4-005, S4-020, S4-021: columns with the source's types; what is there already is not written again."""
    columns = ("id", "origin", "price")
    copies.define(
        "jfk", "non_incremental", "public.flight", "public.jfk", columns=columns, where="origin = 'JFK'"
    )
    copies.provision()
    made = (
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'jfk'::regclass AND attnum > 0"
    )
    assert copies.capetown.rows(made) == [("id", "integer"), ("origin", "text"), ("price", "numeric")]
    assert counts(copies.refresh("jfk")) == (5, 0, 0, 0)
    assert counts(copies.refresh("jfk")) == (0, 0, 0, 5)
    copies.london.run(
        "UPDATE flight SET price = 0.50 WHERE id = 2",  # 0.5 before: another form is another content
        "UPDATE flight SET origin = 'EWR' WHERE id = 4",
        "INSERT INTO flight VALUES (11, 'JFK', 0, NULL)",
        "DELETE FROM flight WHERE id = 6",
    )
    assert counts(copies.refresh("jfk")) == (2, 0, 3, 2)
    rows = copies.capetown.rows("SELECT id, price::text FROM jfk ORDER BY id")
    assert rows == [
        (2, "0.50"),
        (8, "2.0000000000000000"),
        (10, "2.5000000000000000"),
        (11, None),
    ]


def test_any_query_can_be_copied_through_a_view_with_repeated_rows_as_often_as_it_returns_them(
    copies: Copies,
) -> None:
    """Joins and aggregates without SQL in the configuration; rows without any key."""
    copies.london.run(
        "CREATE VIEW origins AS SELECT f.origin, g.n AS copies FROM flight f, generate_series(1, 2) g (n)"
    )
    copies.define("origins", "non_incremental", "public.origins", "public.origins")
    copies.provision()
    assert counts(copies.refresh("origins")) == (20, 0, 0, 0)
    copies.london.run("UPDATE flight SET origin = 'LGA' WHERE id = 2")
    assert counts(copies.refresh("origins")) == (2, 0, 2, 18)
    query = "SELECT origin, copies, count(*) FROM origins GROUP BY 1, 2 ORDER BY 1, 2"
    assert copies.capetown.rows(query) == copies.london.rows(query)
    copies.london.run("DELETE FROM flight")
    assert counts(copies.refresh("origins")) == (0, 0, 20, 0)


def test_a_reader_sees_the_content_before_or_after_a_refresh_and_nothing_else(copies: Copies) -> None:
    """S4-005: never empty, never mixed, and never kept waiting."""
    copies.define("all", "non_incremental", "public.flight", "public.copy")
    copies.provision()
    copies.refresh("all")
    copies.london.run("UPDATE flight SET note = 'new'")
    seen: list[tuple[int, int]] = []

    def look(step: str) -> None:
        with copies.capetown.log_in(copies.capetown.superuser) as reader:
            reader.execute("SET statement_timeout = '2s'")
            seen.append(reader.execute("SELECT count(*), count(note) FROM copy").fetchone())  # type: ignore[arg-type]

    refresh(copies.job("all"), copies.spark, look)
    assert set(seen) == {(10, 0), (10, 10)}
    assert seen == sorted(seen)
    assert copies.capetown.rows("SELECT count(note) FROM copy") == [(10,)]


def test_two_readers_share_a_large_table_in_one_snapshot(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concord.databases.postgresql.snapshots.query.PAGES_PER_READER", 5)
    copies.london.run(
        "INSERT INTO flight SELECT n, 'EWR', n, n, repeat('x', 100) FROM generate_series(11, 2000) n"
    )
    copies.define("all", "non_incremental", "public.flight", "public.copy")
    copies.provision()

    def edit() -> None:
        copies.london.run("UPDATE flight SET note = 'too late'", "INSERT INTO flight VALUES (0)")

    assert counts(copies.refresh("all", At("stage", edit))) == (2000, 0, 0, 0)
    assert copies.capetown.value("SELECT count(*) FROM copy WHERE note = 'too late'") == 0


def test_few_rows_of_a_large_table_are_carried_by_the_drivers_threads_in_one_snapshot(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concord.databases.postgresql.snapshots.query.PAGES_PER_READER", 5)
    copies.london.run(
        "INSERT INTO flight SELECT n, 'EWR', n, n, repeat('x', 100) FROM generate_series(11, 2000) n"
    )
    copies.define("some", "non_incremental", "public.flight", "public.copy", where="id < 1900 AND id > 990")
    copies.provision()

    def edit() -> None:
        copies.london.run("UPDATE flight SET note = 'too late'", "DELETE FROM flight WHERE id = 1000")

    def spark() -> Any:
        raise AssertionError("so few rows ask for no Spark")

    report = refresh(copies.job("some"), spark, At("stage", edit))
    assert counts(report) == (909, 0, 0, 0)
    assert copies.capetown.value("SELECT count(*) FROM copy WHERE note = 'too late'") == 0


@pytest.mark.parametrize("enabled", ["", "ALWAYS"])
def test_a_rule_of_the_destination_is_named_and_nothing_is_written(copies: Copies, enabled: str) -> None:
    """One that is enabled ALWAYS left out each row, and the refresh succeeded."""
    copies.define("all", "non_incremental", "public.flight", "public.copy")
    copies.provision()
    copies.capetown.run(
        "CREATE RULE quiet AS ON INSERT TO copy DO INSTEAD NOTHING",
        f"ALTER TABLE copy ENABLE {enabled} RULE quiet",
    )
    with pytest.raises(StructureChanged, match=r"^capetown: public\.copy has the rule quiet"):
        copies.refresh("all")
    copies.capetown.run("DROP RULE quiet ON copy")
    assert counts(copies.refresh("all")) == (10, 0, 0, 0)


def test_rows_that_the_source_counted_and_nobody_read_stop_a_refresh(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies.define("all", "non_incremental", "public.flight", "public.copy")
    copies.provision()
    monkeypatch.setattr(
        "concord.databases.postgresql.snapshots.query.rows_queries",
        lambda layout, condition, pages, readers: (
            f"{rows_queries(layout, condition, pages, readers)[0]} AND t.id <> 7",
        ),
    )
    with pytest.raises(CountMismatch, match="counted 10 rows, but 9 rows were read"):
        copies.refresh("all")
    assert copies.capetown.value("SELECT count(*) FROM copy") == 0
