"""How tables look: at wide and narrow terminals, in a pipe, and as JSON; without Airflow."""

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.messages.inert import inert, inert_lines
from concord.terminal import shown, table_form
from concord.terminal.shown import Ago, Columns, show
from concord.terminal.table_form import Cells, Kind

LINK = "a_synchronization_with_a_very_long_name_indeed/forward"
TABLE = Columns(("link", "applied", "held", "message"), prose=("message",), counts=("applied", "held"))
MESSAGE = "public.flights: no common history is proven between london and capetown"
ROWS = [(LINK, 3, 0, MESSAGE), ("short/reverse", 12, 0, None)]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes stdout a terminal of so many columns."""

    def becomes(columns: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))

    return becomes


def drawn(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [200, 120, 80, 40, 20])
def test_no_identifier_is_cut_or_broken_whatever_the_width(
    width: int, terminal: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(width)
    show("links", "Links", TABLE, ROWS)
    lines = drawn(capsys)
    for word in (LINK, "short/reverse", "public.flights:", "12", *MESSAGE.split()):
        assert any(re.search(rf"(^|\s){re.escape(word)}(\s|$)", line) for line in lines), word
    assert "…" not in "".join(lines)


@pytest.mark.parametrize(("width", "fits"), [(120, True), (92, True), (80, False), (40, False)])
def test_a_table_that_is_too_wide_becomes_a_paragraph_a_row(
    width: int, fits: bool, terminal: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(width)
    show("links", "Links", TABLE, ROWS)
    lines = drawn(capsys)
    assert any(line.split()[:2] == ["link", "applied"] for line in lines) is fits
    assert any(line.strip().startswith(f"link: {LINK}") for line in lines) is not fits
    longest = max(len(line) for line in lines if LINK not in line)
    assert longest <= width


def test_counts_of_zero_give_way_first_and_are_named(
    terminal: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(30)
    show(
        "rows",
        "Rows",
        Columns(("table", "applied", "held"), counts=("applied", "held")),
        [("public.flights", 3, 0)],
    )
    assert [line.split() for line in drawn(capsys) if line.strip("- ")] == [
        ["Rows"],
        ["table", "applied"],
        ["public.flights", "3"],
        ["0", "in", "every", "row:", "held"],
    ]


def test_a_pipe_has_plain_lines_of_full_width(capsys: pytest.CaptureFixture[str]) -> None:
    show("links", "Links", TABLE, ROWS)
    title, headings, first, second, last = drawn(capsys)
    assert (title, last) == ("Links", "")
    assert list(map(headings.index, ("link", "applied", "held", "message"))) == [2, 58, 67, 73]
    assert first == f"  {LINK}  3        0     {MESSAGE}"
    assert second.split() == ["short/reverse", "12", "0"]
    assert not re.search(r"[^\x20-\x7e]", "".join([headings, first, second]))


def test_what_a_row_holds_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show("rows", "Rows \x1b[2J", ("key",), [("a\nb\x1b]0;owned\x07\x9b",)])
    assert drawn(capsys) == ["Rows \\x1b[2J", "  key", "  a\\nb\\x1b]0;owned\\x07\\x9b", ""]


SIGNS = st.text(
    st.one_of(st.characters(categories=("Cc", "Cf", "Co", "Cs", "Zl", "Zp")), st.characters()), max_size=20
)


@pytest.mark.parametrize("width", [None, 40])
@given(texts=st.lists(SIGNS, min_size=6, max_size=6))
def test_no_text_of_a_database_steers_or_hides_on_a_terminal(width: int | None, texts: list[str]) -> None:
    """Wherever it stands; each line that is written is one of ours."""
    title, heading, cell, sentence, trouble, refused = texts
    with pytest.MonkeyPatch.context() as patch:
        out, err = StringIO(), StringIO()
        patch.setattr(out, "isatty", lambda: width is not None)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setenv("COLUMNS", str(width))
        show("rows", title, Columns((heading,), prose=(heading,)), [(cell,), ({cell: [cell]},)])
        shown.say(sentence)
        shown.notice(trouble)
        shown.problem(trouble)
        shown.progress(trouble)
        shown.refusal("a_code", refused, transient=True, as_json=False)
        shown.refusal("a_code", refused, transient=True, as_json=True)
        shown.whole({heading: cell})
    written = (out.getvalue() + err.getvalue()).replace("\n", "")
    assert not [
        sign for sign in written if unicodedata.category(sign) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
    ]
    assert out.getvalue().endswith(f"{inert(sentence)}\n{json.dumps({heading: cell}, indent=2)}\n")
    several = len(inert_lines(refused).splitlines()) + trouble.count("\n")
    assert len(err.getvalue().split("\n")) == 5 + several


WORDS = st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=30)


@given(
    rows=st.lists(
        st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=8).map(" ".join)), min_size=1, max_size=4
    ),
    width=st.integers(10, 120),
)
def test_every_word_of_every_cell_stands_in_one_piece(rows: list[tuple[str, str]], width: int) -> None:
    text = table_form.drawn(Cells(("name", "said"), rows, (Kind.EXACT, Kind.PROSE)), width)
    in_columns = "---" in text.partition("\n")[2].partition("\n")[0]
    lines = text.splitlines()[2 if in_columns else 0 :]
    words = [word for line in lines for word in line.split() if in_columns or word not in ("name:", "said:")]
    assert sorted(words) == sorted(" ".join(each for row in rows for each in row).split())


def test_a_document_holds_numbers_moments_and_empty_lists(capsys: pytest.CaptureFixture[str]) -> None:
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    with shown.document("status"):
        show(
            "links",
            "Links",
            ("link", "pending", "oldest"),
            [("a/forward", 3, Ago(moment)), ("b/forward", None, None)],
        )
        show("holds", "Held", ("table",), [], if_any=True)
        shown.say("Done.", seconds=1.5)
        shown.notice("n")
        shown.problem("p", "site_unavailable")
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "command": "status",
        "links": [
            {"link": "a/forward", "pending": 3, "oldest": "2026-03-01T12:00:00+00:00"},
            {"link": "b/forward", "pending": None, "oldest": None},
        ],
        "holds": [],
        "seconds": 1.5,
        "said": ["Done."],
        "notices": ["n"],
        "problems": [{"code": "site_unavailable", "message": "p"}],
    }
    assert list(told) == ["command", "links", "holds", "seconds", "said", "notices", "problems"]


def test_a_command_that_is_refused_prints_no_document(capsys: pytest.CaptureFixture[str]) -> None:
    def refused() -> None:
        with shown.document("status"):
            shown.say("half of it")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        refused()
    assert capsys.readouterr().out == ""
    assert not shown.is_document()


@pytest.mark.parametrize("write", [shown.write, shown.write_error])
def test_a_reader_that_has_gone_is_silent_and_the_command_goes_on(
    write: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`| head` closes its end of the pipe."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as stream:
        monkeypatch.setattr(sys, "stdout" if write is shown.write else "stderr", stream)
        write("lost")
        write("lost as well")
        stream.flush()


def test_a_problem_of_several_lines_is_shown_on_as_many(capsys: pytest.CaptureFixture[str]) -> None:
    """One for each grant that is missing. Nothing else that is not seen gets through."""
    shown.problem("capetown: GRANT SELECT ON TABLE a TO x\ncapetown: GRANT \x1b[2J")
    assert capsys.readouterr().err == "capetown: GRANT SELECT ON TABLE a TO x\ncapetown: GRANT \\x1b[2J\n"
