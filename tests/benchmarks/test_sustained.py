"""A program beside users who commit all the while: what it is given, until when it works, what is told of it."""

from pathlib import Path

import pytest

from benchmarks import databases, sustained
from benchmarks.comparison import WrongResult
from benchmarks.databases import ServerKind
from benchmarks.measurement import Start
from benchmarks.rival import Program, Rival, concord
from benchmarks.sustained import Sustained, sustain
from embedded.connect_server import ConnectServer

ROWS, TRANSACTIONS = 500, 400


def test_a_program_works_until_both_sites_show_every_update_and_one_that_does_nothing_is_found_out(
    tmp_path: Path, connect: ConnectServer
) -> None:
    with databases.running_pair(tmp_path, ServerKind()) as pair:
        databases.fill_pair(pair, ROWS)
        before = pair.london.row("SELECT sum(miles) FROM public.bookings")[0]
        found = sustain(concord(pair, Start.WARM, connect.url), ROWS, TRANSACTIONS)
        for site in pair.all:
            assert site.row("SELECT sum(miles) FROM public.bookings") == (before + TRANSACTIONS,)
        assert found.transactions == TRANSACTIONS
        assert found.runs >= 2
        assert 0 < found.behind < found.seconds
        with pytest.raises(WrongResult, match="the sites differ"):
            sustain(Rival(Program.BUCARDO, pair, lambda: 0.0), ROWS, TRANSACTIONS)


def test_a_program_is_a_line_with_its_rate_and_ours_by_its_own_of_the_same_repetition() -> None:
    measured = {
        Program.WARM: [Sustained(1_000, 10.0, 1.0, 3), Sustained(1_000, 5.0, 1.0, 5)],
        Program.BUCARDO: [Sustained(1_000, 20.0, 4.0, 9), Sustained(1_000, 20.0, 2.0, 9)],
    }
    assert sustained.grid(1_000, measured).rows == [
        ("Concord, warm", "150.00 (100.00 to 200.00)", "1.00", "1.00", "4.00 (3.00 to 5.00)"),
        ("Bucardo", "50.00", "3.00 (2.00 to 4.00)", "3.00 (2.00 to 4.00)", "9.00"),
    ]
