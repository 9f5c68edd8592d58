"""The texts that the reader refuses before it looks at a single setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from concord.configuration.configuration import load
from concord.messages.errors import ConfigurationInvalid, Problem
from tests.configuration.examples import VALID, spoiled

Problems = Callable[[str | bytes], tuple[Problem, ...]]


def test_a_missing_file_is_named_with_the_variable_that_chooses_another(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid) as refused:
        load(tmp_path / "absent.yaml")
    (problem,) = refused.value.problems
    assert str(tmp_path / "absent.yaml") in problem.message
    assert "CONCORD_CONFIG" in problem.hint


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid, match="is not a file"):
        load(tmp_path)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[yaml.Event]:
    """The events that the reader has taken from the parser."""
    taken, parse = list[yaml.Event](), yaml.parse

    def parsed(*given: Any, **more: Any) -> Iterator[yaml.Event]:
        for event in parse(*given, **more):
            taken.append(event)
            yield event

    monkeypatch.setattr(yaml, "parse", parsed)
    return taken


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused_before_the_rest_is_read(
    problems: Problems, events: list[yaml.Event], opening: str
) -> None:
    (problem,) = problems(opening * 100_000)
    assert len(events) < 40, "at most a key and a value of each level"
    assert "nested too deeply" in problem.message


def test_an_anchor_bomb_is_refused_without_a_look_at_what_it_would_be(
    problems: Problems, events: list[yaml.Event]
) -> None:
    levels = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40))]
    found = problems("\n".join(levels))
    # Of each line its key, the items, and both ends of their list; of the document and its mapping, of the stream.
    assert len(events) == 40 * 3 + 2 + 39 * 9 + 6
    assert sum("anchors and aliases are refused" in problem.message for problem in found) == 40 + 39 * 9


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- a\n- b\n", 1, "a mapping expected"),
        ("just text\n", 1, "a mapping expected"),
        (VALID + "---\nsites: {}\n", 24, "a second YAML document"),
        (VALID + "? [a, b]\n: c\n", 24, "a key must be plain text"),
        (VALID + "\x07\n", 24, "a control character"),
        (VALID + 'x: "\\UFFFFFFFF"\n', 1, "an escape or directive"),
        (VALID + 'x: "\\U00110000"\n', 1, "an escape or directive"),
        (spoiled("connection: capetown", 'connection: "\\ud800"'), 4, "not Unicode text"),
        (spoiled("connection: capetown", f"connection: {'x' * 1001}"), 4, "longer than 1,000 characters"),
        (spoiled("source: london", "source: [london"), 20, "not YAML"),
        (
            spoiled("  london: {connection", "  !!str london: {connection"),
            2,
            "a key takes no YAML tag or anchor",
        ),
        (
            spoiled("  london: {connection", "  &x london: {connection"),
            2,
            "a key takes no YAML tag or anchor",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) and "\n" not in value else "",
)
def test_yaml_that_is_no_plain_mapping_is_refused(
    problems: Problems, text: str, line: int, message: str
) -> None:
    assert any(problem.line == line and message in problem.message for problem in problems(text))


@pytest.mark.parametrize("word", ["y", "N", "yes", "No", "on", "OFF"])
def test_every_word_that_yaml_takes_for_a_boolean_must_be_quoted(problems: Problems, word: str) -> None:
    (problem,) = problems(spoiled("    readers: 2", f"    insecure: {word}"))
    assert f'write "{word}" for the word, or true or false' in problem.hint


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("connection: capetown", "connection: 5", "text expected"),
        ("connection: capetown", "connection:", "text expected"),
        ("connection: capetown", "connection: 1.5", "text expected"),
        ("connection: capetown", "connection: a b", "not the id of an Airflow connection"),
        ("readers: 2", "pool: a/b", "not the name of an Airflow pool"),
        ("readers: 2", "pool: 5", "text expected"),
        ("readers: 2", 'readers: "2"', "a whole number expected"),
        ("readers: 2", "readers: true", "a whole number expected"),
        ("readers: 2", "readers: 0", "too small"),
        ("readers: 2", "insecure: 1", "true or false expected"),
        ("key: [carrier]", "key: carrier", "a list expected"),
        ("key: [carrier]", "key: []", "empty"),
        ("key: [carrier]", "key: [carrier, Carrier]", "names one thing twice"),
        ("at: {capetown: ops.flights}", "at: [capetown]", "a mapping expected"),
        ("  london: {connection: london}", "  london: london", "a mapping expected"),
        ("[latest_timestamp]", "[]", "empty"),
        ("[latest_timestamp]", "[latest_timestamp, latest_timestamp]", "names one thing twice"),
        ('"*/5 * * * *"', "daily", "not a cron expression"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_what_is_expected(
    problems: Problems, old: str, new: str, message: str
) -> None:
    (problem,) = problems(spoiled(old, new))
    assert message in problem.message
    assert problem.hint


@pytest.mark.parametrize("section", ["sites", "replication_sets", "synchronizations"])
@pytest.mark.parametrize("value", ["{}", "", "[]", "0"])
def test_an_empty_or_wrong_section_is_refused(problems: Problems, section: str, value: str) -> None:
    start = VALID.index(section + ":")
    end = VALID.find("\n\n", start)
    text = VALID[:start] + f"{section}: {value}\n" + (VALID[end:] if end > 0 else "")
    assert section in {problem.key for problem in problems(text)}
