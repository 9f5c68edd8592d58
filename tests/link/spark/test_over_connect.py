"""Over Spark Connect links, plans, comparisons, first loads and snapshots do the same as over classic Spark.
Whichever of server and driver dies, the next run ends right."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from concord.messages.errors import SparkUnavailable
from concord.transmission import route
from embedded.connect_server import ConnectServer, connect_server
from spark_jobs.connect import Connected, connected
from tests.given.at_step import At
from tests.given.behind_capture import behind_the_back
from tests.given.comparison import compared, kinds
from tests.given.fixtures import MakePair
from tests.given.killed_driver import started
from tests.given.snapshot_sites import LATE, WANTED, Copies
from tests.given.strangers import forget, initialized
from tests.given.two_sites import Pair, carried

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")]

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, price numeric(8, 2), read timestamptz)",
    "INSERT INTO book SELECT n, 'old ' || n, n / 7.0, 'infinity' FROM generate_series(1, 50) n",
)


@contextmanager
def over(server: ConnectServer, sites: Pair) -> Iterator[Pair]:
    """The same pair, whose links ask this server for their sessions."""
    with connected(server.url) as spark:
        yield replace(sites, spark=spark)


def edit(sites: Pair) -> None:
    sites.london.run(
        "UPDATE book SET title = 'london' WHERE id <= 10", "INSERT INTO book VALUES (51, 'new', 'NaN')"
    )
    sites.capetown.run(
        "UPDATE book SET title = 'capetown' WHERE id <= 3", "DELETE FROM book WHERE id IN (4, 49)"
    )


@pytest.mark.parametrize("most", [0, 10_000], ids=["judged by Spark", "judged at the target"])
def test_links_with_conflicts_end_as_over_classic_spark(
    pair: MakePair, connect: ConnectServer, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(route, "MOST_UNDER_LOCK", most)
    classic, remote = pair(*BOOK), pair(*BOOK)
    for sites in (classic, remote):
        edit(sites)
    expected = [classic.run(direction, spark_from=0).tables for direction in ("forward", "reverse")]
    with over(connect, remote) as there:
        planned = there.run(spark_from=0, plan_only=True)
        assert remote.london.rows("SELECT count(*) FROM concord.conflict") == [(0,)]
        found = [there.run(direction, spark_from=0).tables for direction in ("forward", "reverse")]
    assert carried(planned).conflicts == 4
    assert found == expected
    assert remote.equal
    assert remote.contents() == classic.contents()
    assert len(remote.conflicts()) == 4


def test_a_first_load_a_comparison_and_a_repair_end_right(pair: MakePair, connect: ConnectServer) -> None:
    sites = pair(*BOOK)
    forget(sites)
    behind_the_back(sites.capetown, "DELETE FROM book WHERE id > 20")
    with over(connect, sites) as there:
        initialized(there, "reinitialize", named="london")
        assert sites.equal
        behind_the_back(sites.capetown, "UPDATE book SET title = 'damaged' WHERE id = 1")
        assert list(kinds(compared(there))) == [("1",)]
        compared(there, "apply", prefer="source")
    assert sites.equal


def test_a_snapshot_is_refreshed(copies: Copies, connect: ConnectServer) -> None:
    copies.define(
        "late", "non_incremental", "public.flight", "public.late", columns=("id", "delay"), where="delay > 50"
    )
    copies.provision()
    with connected(connect.url) as spark:
        replace(copies, spark=spark).refresh("late")
    assert copies.capetown.rows(LATE) == copies.london.rows(WANTED)


@pytest.mark.long
def test_a_server_that_is_killed_before_rows_are_staged_fails_the_run_and_the_next_one_ends_right(
    pair: MakePair, java: Path, tmp_path: Path
) -> None:
    sites = pair(*BOOK)
    edit(sites)
    with (
        connect_server(tmp_path / "spark.log") as server,
        over(server, sites) as there,
        pytest.raises(SparkUnavailable, match=r"[Nn]othing was written"),
    ):
        there.run(at=At("stage", server.kill), spark_from=0)
    assert sites.capetown.rows("SELECT count(*) FROM book WHERE title = 'london'") == [(0,)]
    sites.settle()
    assert sites.equal


@pytest.mark.long
def test_a_run_whose_rows_are_staged_needs_no_server_any_more(
    pair: MakePair, java: Path, tmp_path: Path
) -> None:
    sites = pair(*BOOK)
    edit(sites)
    with connect_server(tmp_path / "spark.log") as server, over(server, sites) as there:
        assert carried(there.run(at=At("write", server.kill), spark_from=0)).acquired == 11
    sites.settle()
    assert sites.equal


@pytest.mark.long
@pytest.mark.parametrize("step", ["stage", "write", "commit", "remember"])
def test_a_driver_that_is_killed_leaves_a_server_that_serves_and_the_next_run_ends_right(
    pair: MakePair, connect: ConnectServer, tmp_path: Path, step: str
) -> None:
    sites = pair(*BOOK)
    edit(sites)
    ended = started(sites.job(spark_from=0), step, tmp_path, connect.url)
    assert ended.returncode == -9, ended.stderr
    with over(connect, sites) as there:
        there.settle()
    assert sites.equal


def test_a_link_of_few_rows_and_one_with_nothing_to_send_need_no_server(pair: MakePair) -> None:
    sites = pair(*BOOK)
    nobody = replace(sites, spark=Connected("sc://127.0.0.1:1"))
    edit(sites)
    assert carried(nobody.run()).acquired == 11
    assert nobody.run().total("acquired") == 0
