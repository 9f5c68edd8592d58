"""The benchmark of capture measures real statements on two real tables, and ratios of neighbours."""

from collections.abc import Iterator

import pytest
from rich.console import Console

from benchmarks import databases
from benchmarks.capture import (
    BULK,
    ROUNDS_OF_SINGLES,
    SINGLES,
    TRACKED,
    UNTRACKED,
    Pairs,
    Plan,
    fill,
    grids,
    measure,
)
from benchmarks.databases import Database
from benchmarks.pgbench import Users
from demo.progress import Progress

PLAN = Plan(rows=300, count=100, repeat=1, users=Users(clients=1, seconds=1))


CAPTURED = (
    "SELECT array_agg(DISTINCT event_object_schema || '.' || event_object_table) FROM information_schema.triggers"
    " WHERE trigger_name = 'zz_concord_update'"
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with databases.running_alone(tmp_path_factory.mktemp("capture")) as made:
        fill(made, PLAN.rows)
        yield made


@pytest.mark.long
def test_both_tables_are_measured_alike_and_only_one_of_them_is_captured(database: Database) -> None:
    results = measure(database, PLAN, Progress(Console(quiet=True)))
    single, bulk = grids(results, PLAN)
    assert [row[:2] for row in single.rows] == [*SINGLES]
    assert [row[0] for row in bulk.rows] == [*BULK]
    assert all(pairs.ratio.least > 0 for pairs in (*results.single.values(), *results.bulk.values()))
    assert {len(pairs.tracked) for pairs in results.single.values()} == {ROUNDS_OF_SINGLES}
    for schema in (TRACKED, UNTRACKED):
        assert database.row(f"SELECT count(*) FROM {schema}.bookings") == (PLAN.rows,)
        changed = f"SELECT count(*) > 0 FROM {schema}.pgbench_accounts WHERE abalance <> 0"
        assert database.row(changed) == (True,)
    assert database.row(CAPTURED) == (["public.bookings", "public.pgbench_accounts"],)
    assert database.row(f"SELECT count(*) >= {PLAN.count} FROM {_shadow('bookings')}") == (True,)
    # Where pgbench adds nothing to an account, nothing has changed.
    once_each = "SELECT count(DISTINCT aid) FROM public.pgbench_history WHERE delta <> 0"
    assert database.row(f"SELECT count(*) FROM {_shadow('pgbench_accounts')}") == database.row(once_each)


def _shadow(table: str) -> str:
    return f'concord."{TRACKED}.{table}"'


def test_what_the_captured_table_took_is_told_from_what_the_other_did() -> None:
    pairs = Pairs()
    pairs.add(TRACKED, 1.0)
    pairs.add(UNTRACKED, 2.0)
    assert (pairs.tracked, pairs.untracked) == ([1.0], [2.0])


def test_a_ratio_is_of_two_that_stood_beside_each_other() -> None:
    ratio = Pairs(untracked=[1.0, 10.0, 2.0], tracked=[2.0, 30.0, 2.0]).ratio
    assert (ratio.median, ratio.least, ratio.most) == (2.0, 1.0, 3.0)
