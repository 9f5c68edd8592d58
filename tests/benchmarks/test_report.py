"""The benchmark's printed and recorded words."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.chart import chart
from benchmarks.comparison import Plan, Results
from benchmarks.measurement import Measurement, Point, Spread, Start
from benchmarks.record import BEGIN, END, record
from benchmarks.report import grids

MEBIBYTE = 1024**2


def link(wall: float, stage: float, write: float) -> Measurement:
    return Measurement(wall, {"stage": stage, "write": write}, 300 * MEBIBYTE)


def by_hand(copy: float, write: float) -> Measurement:
    return Measurement(copy + write, {"copy": copy, "write": write})


def point(table_rows: int, changes: int = 1_000) -> Point:
    return Point(
        table_rows,
        changes,
        link={
            Start.COLD: [link(8.0, 2.0, 3.0), link(7.0, 1.0, 1.0), link(9.0, 4.0, 2.0)],
            Start.WARM: [link(4.0, 2.0, 1.0)],
            Start.THREADS: [link(2.0, 1.0, 0.5)],
        },
        by_hand=[by_hand(1.0, 2.0), by_hand(1.0, 1.0), by_hand(2.0, 2.0)],
    )


IDLE = {
    Start.COLD: [Measurement(3.0, {})],
    Start.WARM: [Measurement(0.5, {})],
    Start.THREADS: [Measurement(0.4, {})],
}
RESULTS = Results([point(500), point(5_000), point(5_000, 10)], IDLE)


def test_a_spread_is_the_median_and_the_range() -> None:
    assert Spread.of([3.0, 9.0, 1.0]) == Spread(median=3.0, least=1.0, most=9.0)


def test_the_speed_of_whole_processes_is_the_ratio_of_their_medians() -> None:
    whole = next(grids(RESULTS))
    cells = dict(zip(whole.head, whole.rows[0], strict=True))
    assert cells["cold, s"] == "8.00 (7.00 to 9.00)"
    assert cells["warm, s"] == "4.00"
    assert cells["by hand, s"] == "3.00 (2.00 to 4.00)"
    assert (cells["cold, speed"], cells["warm, speed"]) == ("0.38", "0.75")
    assert cells["in threads, speed"] == "1.50"
    assert cells["memory, MiB"] == "300"


def test_a_links_parts_stand_beside_those_by_hand() -> None:
    parts = list(grids(RESULTS))[1]
    cells = parts.rows[0]
    assert cells[:2] == ("500", "1,000")
    assert cells[2:4] == ("2.00 (1.00 to 4.00)", "1.00 (1.00 to 2.00)")
    assert cells[4:6] == ("2.00 (1.00 to 3.00)", "2.00 (1.00 to 2.00)")


def test_a_link_with_nothing_to_send_is_shown_for_each_start() -> None:
    assert list(grids(RESULTS))[-1].rows == [("3.00", "0.50", "0.40")]


def test_the_same_changes_in_two_tables_are_set_side_by_side() -> None:
    (growth,) = [grid for grid in grids(RESULTS) if "two sizes" in grid.title]
    assert [row[:3] for row in growth.rows] == [("1,000", "500", "5,000")]
    assert growth.rows[0][-1] == "1.00"


def test_results_go_between_the_markers_and_nothing_else_of_the_page_changes(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"before\n{BEGIN}\nold numbers\n{END}\nafter\n")
    record(page, "a machine", list(grids(RESULTS)), RESULTS.points)
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old numbers" not in text
    assert "| 8.00 (7.00 to 9.00) |" in text


def test_a_page_without_markers_is_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("by hand\n")
    with pytest.raises(ValueError, match="results: begin"):
        record(page, "a machine", [], RESULTS.points)
    assert page.read_text() == "by hand\n"


def test_the_chart_shows_every_point_of_the_largest_table_and_of_no_other() -> None:
    root = ElementTree.fromstring(chart(RESULTS.points))  # noqa: S314 - our own text
    space = "{http://www.w3.org/2000/svg}"
    lines = root.findall(f"{space}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [2, 2, 2]


def test_a_plan_that_would_edit_a_row_twice_is_refused() -> None:
    assert not list(Plan([(1_000, [100])], repeat=3).too_large())
    assert list(Plan([(1_000, [300])], repeat=2).too_large()) == [
        "a table of 1,000 rows has not the 1,830 different rows that the runs would edit"
    ]
