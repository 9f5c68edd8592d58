"""The benchmark of rivals: its plans, its tables, its words where rivals are missing, and one rival at work."""

from pathlib import Path

import pytest

from benchmarks import databases, logical_replication, packages, rivals
from benchmarks.bookings import Edits
from benchmarks.comparison import WrongResult, check
from benchmarks.databases import SETTINGS, ServerKind
from benchmarks.packages import NotInstalled, newest_with_perl
from benchmarks.rival import Program, measure
from benchmarks.rivals import ROUNDS_OF_FEW, Plan, Results, grid

ROWS = 500


def test_a_number_of_changes_is_a_line_with_medians_ranges_and_bucardos_time_by_concords_for_the_same_edits() -> (
    None
):
    results = Results()
    seconds = {
        Program.WARM: (2.0, 1.0, 3.0),
        Program.COLD: (8.0, 8.0, 16.0),
        Program.BUCARDO: (4.0, 6.0, 6.0),
        Program.TUNED: (3.0, 3.0, 3.0),
        Program.LOGICAL: (0.5, 0.5, 0.5),
    }
    for program, measured in seconds.items():
        for each in measured:
            results.add(1_000, program, each)
    shown = grid(5_000, results.seconds)
    assert shown.head[-4:] == (
        "Bucardo / Concord, warm",
        "Bucardo / Concord, cold",
        "Bucardo, tuned / Concord, warm",
        "Bucardo, tuned / Concord, cold",
    )
    assert shown.rows == [
        (
            "1,000",
            "3",
            "2.00 (1.00 to 3.00)",
            "8.00 (8.00 to 16.00)",
            "6.00 (4.00 to 6.00)",
            "3.00",
            "0.50",
            "2.00 (2.00 to 6.00)",
            "0.50 (0.38 to 0.75)",
            "1.50 (1.00 to 3.00)",
            "0.38 (0.19 to 0.38)",
        )
    ]


def test_sets_of_edits_follow_each_other_and_must_find_room_in_the_table() -> None:
    assert [(each.count, each.before) for each in Plan(ROWS, (20_000, 30_000), 1).edits] == [
        (10, 0),
        (20_000, 10),
        (30_000, 20_010),
    ]
    assert not Plan(50_010, (20_000, 30_000), repeat=5).too_large
    assert Plan(50_009, (20_000, 30_000), repeat=1).too_large


def test_few_changes_are_carried_several_times_on_the_same_servers_each_time_other_ones() -> None:
    plan = Plan(ROWS, (20, 20_000), 1)
    assert [(each.count, each.before) for each in plan.edits] == [
        (10, 0),
        *((20, 10 + 20 * ordinal) for ordinal in range(ROUNDS_OF_FEW)),
        (20_000, 10 + 20 * ROUNDS_OF_FEW),
    ]
    assert not Plan(10 + 20 * ROUNDS_OF_FEW, (20,), repeat=1).too_large
    assert Plan(9 + 20 * ROUNDS_OF_FEW, (20,), repeat=1).too_large


def installed(versions: Path, version: int, *, perl: bool) -> Path:
    programs = versions / str(version) / "bin"
    programs.mkdir(parents=True)
    (programs / "initdb").touch()
    if perl:
        (programs.parent / "lib").mkdir()
        (programs.parent / "lib" / "plperl.so").touch()
    return programs


def test_the_newest_server_with_perl_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.shutil, "which", lambda _: "/usr/bin/bucardo")
    installed(tmp_path, 15, perl=True)
    expected = installed(tmp_path, 17, perl=True)
    installed(tmp_path, 18, perl=False)
    (tmp_path / "old").mkdir()
    assert newest_with_perl(tmp_path) == (17, expected)


def test_what_is_missing_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.shutil, "which", lambda _: "/usr/bin/bucardo")
    with pytest.raises(NotInstalled, match=r"apt-get install bucardo postgresql-plperl-15$"):
        newest_with_perl(tmp_path)
    installed(tmp_path, 17, perl=False)
    with pytest.raises(NotInstalled, match=r"apt-get install bucardo postgresql-plperl-17$"):
        newest_with_perl(tmp_path)


def test_the_benchmark_ends_where_bucardo_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(packages.shutil, "which", lambda _: None)
    assert rivals.main(["--directory", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_logical_replication_carries_what_was_edited_while_it_was_disabled(tmp_path: Path) -> None:
    kind = ServerKind(settings={**SETTINGS, **logical_replication.SETTINGS})
    with databases.running_pair(tmp_path, kind) as pair:
        databases.fill_pair(pair, ROWS)
        with logical_replication.subscribed(pair) as rival:
            for edits in (Edits(ROWS, 50), Edits(ROWS, 50, 50)):
                assert measure(rival, edits) > 0
        pair.london.run(*Edits(ROWS, 50, 100).statements)
        with pytest.raises(WrongResult):
            check(pair.all, Edits(ROWS, 50, 100))
