"""The staged rows of a transmission go when it ends."""

import pytest

from concord.databases.postgresql.rows import stage
from concord.databases.postgresql.sites.ends import Target
from tests.given.fixtures import MakePair

pytestmark = pytest.mark.spark


def test_a_table_that_a_stopped_executor_holds_keeps_no_other_one(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "PATIENCE", "50ms")
    sites = pair("CREATE TABLE item (id int PRIMARY KEY)", "CREATE TABLE other (id int PRIMARY KEY)")
    target = Target(sites.job())
    try:
        shapes, _ = target.inspect(sites.tables)
        first, second = (target.create_staging(shape, ordinal) for ordinal, shape in enumerate(shapes))
        with sites.capetown.log_in("postgres", autocommit=False) as holder:
            holder.execute(f"LOCK TABLE {first.sql}".encode())
            target.drop_staging()
            left = stage.orphans(sites.capetown.connection, [])
        assert left == [first.relation], second
        target.drop_staging()
        assert stage.orphans(sites.capetown.connection, []) == []
    finally:
        target.close()


def test_a_staged_table_goes_with_its_indexes(pair: MakePair) -> None:
    # An initialization indexes what it has staged: a name in the same schema, which goes with its table.
    sites = pair("CREATE TABLE item (id int PRIMARY KEY)")
    target = Target(sites.job())
    try:
        (shape,), _ = target.inspect(sites.tables)
        staged = target.create_staging(shape, 0)
        sites.capetown.run(f"CREATE INDEX {staged.relation}_key ON {staged.sql} (verdict)")
        target.drop_staging()
        assert stage.orphans(sites.capetown.connection, []) == []
    finally:
        target.close()


def test_what_was_staged_goes_where_nobody_may_run_blocks_of_statements(pair: MakePair) -> None:
    sites = pair("CREATE TABLE item (id int PRIMARY KEY)")
    target = Target(sites.job())
    try:
        (shape,), _ = target.inspect(sites.tables)
        target.create_staging(shape, 0)
        sites.capetown.run("REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC")
        target.drop_staging()
        assert stage.orphans(sites.capetown.connection, []) == []
    finally:
        target.close()
