"""The benchmark itself, on a small table: it measures real programs that do real work."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import databases
from benchmarks.bookings import Edits
from benchmarks.by_hand import prepare, run_by_hand
from benchmarks.comparison import Plan, Results, WrongResult, check, compare
from benchmarks.databases import Databases, fill
from benchmarks.initialization import initialize
from benchmarks.measurement import Start
from demo.progress import Progress

ROWS, CHANGES = 1_000, 50


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    with databases.running(tmp_path_factory.mktemp("benchmarks")) as running:
        yield running


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def results(made: Databases, java: object, directory: Path) -> Results:
    plan = Plan([(ROWS, [CHANGES])], repeat=1)
    return compare(made, plan, directory, Progress(Console(quiet=True)))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(900)
class TestMeasuring:
    @pytest.mark.parametrize("start", Start)
    def test_both_programs_are_measured_whole_and_in_parts(self, results: Results, start: Start) -> None:
        (point,) = results.points
        assert (point.table_rows, point.changes) == (ROWS, CHANGES)
        assert 0 < point.by_hand_seconds("copy", "write").median <= point.by_hand_wall.median
        assert 0 < point.link_seconds(start, "stage", "write").median < point.link_wall(start).median

    @pytest.mark.parametrize("start", Start)
    def test_the_parts_of_the_write_come_from_the_links_log(self, results: Results, start: Start) -> None:
        (link,) = results.points[0].link[start]
        assert all(
            link.parts[part] > 0 for part in ("lock", "judge", "shadow", "base", "constraints", "commit")
        )

    def test_warm_links_start_no_process_and_a_connect_server_is_there_for_them(
        self, results: Results, directory: Path
    ) -> None:
        (point,) = results.points
        assert point.link_wall(Start.WARM).median < point.link_wall(Start.COLD).median
        assert "Spark Connect listens" in (directory / "spark.log").read_text()

    def test_for_so_few_rows_no_spark_is_started(self, results: Results) -> None:
        for start in Start:
            assert "start_spark" not in results.points[0].link[start][0].parts

    def test_memory_counts_the_driver(self, results: Results) -> None:
        assert results.points[0].link_memory.median > 40 * 1024**2

    def test_a_link_with_nothing_to_send_starts_no_spark(self, results: Results) -> None:
        assert [len(results.idle[start]) for start in Start] == [1, 1, 1]  # the warm-up is not counted
        assert "start_spark" not in results.idle[Start.COLD][0].parts

    def test_all_three_databases_hold_the_same_rows_at_the_end(
        self, results: Results, made: Databases
    ) -> None:
        content = "SELECT count(*), sum(hashtextextended(b::text, 0)) FROM public.bookings b"
        found = {each.name: each.row(content) for each in made.all}
        assert len(set(found.values())) == 1, found
        assert found["by_hand"][0] == ROWS


def test_the_script_by_hand_repeats_updates_inserts_and_deletes(made: Databases) -> None:
    fill(made, ROWS)
    initialize(made)
    prepare(made)
    edits = Edits(ROWS, CHANGES)
    made.london.run(*edits.statements)
    before = made.by_hand.row(edits.digest)
    measured = run_by_hand(made)
    assert before != made.by_hand.row(edits.digest) == made.london.row(edits.digest)
    assert measured.wall >= measured.parts["copy"] + measured.parts["write"] > 0


def test_edits_that_did_not_arrive_everywhere_are_no_result(made: Databases) -> None:
    fill(made, ROWS)
    edits = Edits(ROWS, CHANGES)
    check(made.all, edits)
    made.london.run(*edits.statements)
    with pytest.raises(WrongResult, match="edited rows differ"):
        check(made.all, edits)
