"""The benchmark of nodes that count hits for all: its load, its links, its check, and its table (S4-178)."""

from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.comparison import WrongResult
from benchmarks.logger import Counted, count_hits, grid
from benchmarks.logger_load import Load
from demo.progress import Progress


@pytest.mark.long
def test_hits_at_two_nodes_are_counted_at_both_while_a_link_is_killed(tmp_path: Path) -> None:
    """S4-173, S4-178, S4-179: each node does the work of both, and a line tells of each thousand."""
    load = Load(1200, None)
    counted = count_hits(tmp_path / "nodes", 2, load, 4.0, Progress(Console(quiet=True)))
    assert (counted.nodes, counted.hits) == (2, 1200)
    assert load.addresses.total() == load.persons.total() == 1200
    assert load.said[0].startswith("1,000 hits, ")
    assert counted.backlog > 0


def test_a_hit_too_many_is_found(tmp_path: Path) -> None:
    load = Load(20, None, persons=Counter({"nobody": 1}))
    with pytest.raises(WrongResult, match="hits_of_person differs from the hits made by 1"):
        count_hits(tmp_path / "nodes", 1, load, None, Progress(Console(quiet=True)))


def test_each_number_of_nodes_is_a_line() -> None:
    found = grid([Counted(4, 100_000, 812.4, 1420.6, 30_100, 61.52, 12, "16.14")])
    assert found.rows == [("4", "100,000", "812", "1,421", "30,100", "61.5", "12")]
