"""Text of databases and their users steers no terminal, forges no log line, and hides in neither."""

import json
import logging
import re
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.jobs.link import TableReport
from concord.messages.errors import ConcordError, StructureChanged
from concord.messages.event_log import log_event, logger_named
from concord.messages.inert import inert
from concord.messages.pace import Pace, logged
from concord.orchestration.tasks.outcome_log import log_outcome
from concord.orchestration.tasks.pace_heard import heard
from tests.suite import PROJECT

#: As often as letters: they are few among all signs.
HIDDEN = st.characters(categories=("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"))
TEXTS = st.text(st.one_of(HIDDEN, st.characters(), st.sampled_from(" %\\\"'")), max_size=30)


def hidden(text: str) -> list[str]:
    return [sign for sign in text if unicodedata.category(sign) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")]


@given(TEXTS)
def test_a_sign_that_is_not_seen_is_shown_and_all_others_stay(text: str) -> None:
    shown = inert(text)
    assert not hidden(shown)
    assert inert(shown) == shown
    seen = "".join(sign for sign in text if inert(sign) == sign)
    assert re.sub(r"\\(x..|u....|U........|[tnr])", "", inert(text.replace("\\", ""))) == seen.replace(
        "\\", ""
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("admin\u202enimda", r"admin\u202enimda"),
        ("pay\u200bment", r"pay\u200bment"),
        ("soft\xadhyphen", r"soft\xadhyphen"),
        ("می\u200cروم", r"می\u200cروم"),
        ("\ufeffbook", r"\ufeffbook"),
        ("a\U000e0041b", r"a\U000e0041b"),
        ("a\ufe0fb\u3164c\u034fd", r"a\ufe0fb\u3164c\u034fd"),
        ("a\r\n\tb\x1b[2J\x9b", r"a\r\n\tb\x1b[2J\x9b"),
        ("\udc80", r"\udc80"),
        (r"C:\temp\new", r"C:\temp\new"),
    ],
)
def test_signs_that_reorder_join_or_have_no_width(text: str, shown: str) -> None:
    assert inert(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Zürich",
        "שלום",
        "محمد",
        "東京\u3000都",
        "3\xa0€ : 5",
        "e\u0301",
        "नमस्ते",
        "👍🏽",
        "\N{NARROW NO-BREAK SPACE}!",
    ],
)
def test_what_people_read_and_write_stays(text: str) -> None:
    assert inert(text) == text


@given(TEXTS)
def test_an_error_has_the_lines_that_it_is_given_and_no_others(text: str) -> None:
    error = StructureChanged(f"{text}\nmend it")
    lines = error.message.split("\n")
    assert lines == str(error).split("\n") == [*map(inert, text.split("\n")), "mend it"]
    assert not any(map(hidden, lines))
    assert ConcordError().message == "Concord could not go on."


class Lines(logging.Handler):
    """As a handler writes them."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.written.append(self.format(record))


@pytest.fixture(scope="module")
def lines() -> Iterator[Lines]:
    handler, ours = Lines(), logging.getLogger("concord")
    level = ours.level
    ours.setLevel(logging.INFO)
    ours.addHandler(handler)
    yield handler
    ours.removeHandler(handler)
    ours.setLevel(level)


@given(TEXTS)
def test_a_log_line_is_one_line_that_hides_nothing(lines: Lines, text: str) -> None:
    lines.written.clear()
    logger = logger_named("concord.of_this_test")
    logger.warning("%s was left out: %s", text, 1)
    logger.info(text.replace("%", "%%"))
    log_event(logger, "changes acquired", table=text)
    log_outcome("done", [TableReport(table=text, stopped=text)], {(text, text): 2})
    logged(logger.info)(Pace(work="write", what=text, seconds=20))
    assert len(lines.written) >= 8
    for line in lines.written:
        assert not hidden(line)


@given(TEXTS, TEXTS)
def test_lines_of_an_application_that_spark_runs_hide_nothing(text: str, table: str) -> None:
    told: list[Pace] = []
    pace = Pace(work="write", what=table.encode("utf-8", "replace").decode(), seconds=1)
    of_pace = f"concord.pace: {inert(json.dumps(pace.model_dump()))}\n"
    printed = [*heard([f"\tat {text}\n", of_pace], told.append)]
    assert told == [pace]
    assert not any(hidden(line.removesuffix("\n")) for line in printed)
    assert printed[0].startswith("    at")


def test_every_logger_of_concords_shows_what_is_not_seen() -> None:
    """Only the one that makes them, and modules that log nothing of a database, ask the library for one."""
    own = re.compile(r"""getLogger\((__name__|["']concord)""")
    files = [*(PROJECT / "plugins").rglob("*.py"), *(PROJECT / "spark_jobs").rglob("*.py")]
    assert len(files) > 100
    found = {
        path.relative_to(PROJECT / "plugins").as_posix() for path in files if own.search(path.read_text())
    }
    assert found == {"concord/machine/java.py"}
