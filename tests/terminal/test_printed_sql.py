"""A printed script hides nothing from the DBA who reads it before he runs it."""

import sys
from pathlib import Path

import pytest

from concord.messages.errors import ParametersRefused
from concord.terminal.printed_sql import print_sql, write_sql

PLAIN = ("capetown", "-- run by\nCREATE TABLE a ();\n")
HIDDEN = ("london", 'CREATE TABLE "a\u202eb" ();\nSELECT 1;\nGRANT SELECT ON "a\u202eb" TO "é";\n')
NOTICE = "london: signs that are not seen stand in the script's lines 1, 3; look at them first"


def test_a_file_holds_the_script_as_it_is_and_a_notice_names_the_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = write_sql([PLAIN, HIDDEN], tmp_path)
    assert [path.read_text() for path in made] == [PLAIN[1], HIDDEN[1]]
    assert capsys.readouterr().err == f"notice: {NOTICE}\n"


def test_so_does_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_sql([PLAIN, HIDDEN])
    printed = capsys.readouterr()
    assert HIDDEN[1] in printed.out
    assert printed.err == f"notice: {NOTICE}\n"


def test_a_terminal_which_would_not_show_it_gets_none_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(ParametersRefused, match="lines 1, 3") as refused:
        print_sql([PLAIN, HIDDEN])
    assert "`--print-sql DIR`" in refused.value.message
    assert capsys.readouterr().out == f"-- site capetown\n{PLAIN[1]}"
