"""The messages by which a person looks up what to do are those that the code has."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "troubleshooting.md").read_text()
#: The first cell of a row that quotes a message, and whose it is where it is not ours.
QUOTED = re.compile(r"^\| `([^`]+)`( \((?:Airflow|Python|libpq|PostgreSQL)'s\))? \|", re.MULTILINE)
OURS = [message for message, foreign in QUOTED.findall(PAGE) if not foreign]


def texts(tree: ast.AST) -> Iterator[str]:
    """The words of each string of a module, `…` for what is put in; those in several pieces as one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def said() -> str:
    files = [file for part in ("plugins", "spark_jobs") for file in (PROJECT / part).rglob("*.py")]
    return "\n".join(text.replace("\n", " ") for file in files for text in texts(ast.parse(file.read_text())))


def is_said(message: str) -> bool:
    """In one string, with anything where the message has `…`."""
    return re.search(".*".join(map(re.escape, message.split("…"))), said()) is not None


@pytest.mark.parametrize("message", OURS)
def test_a_quoted_message_is_one_of_the_codes(message: str) -> None:
    assert is_said(message), message


def test_a_message_that_nobody_says_would_be_noticed() -> None:
    assert len(OURS) > 30
    assert not is_said("the moon … is full")
    assert not is_said("there are no Airflow connections …; destroy each of them")
