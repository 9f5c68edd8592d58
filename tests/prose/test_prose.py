"""The measure of prose finds what breaks a rule, and nothing else."""

import subprocess
from pathlib import Path

import pytest

from tests.prose.rules import broken
from tests.prose.sentences import sentences, words
from tests.prose.subjects import too_long
from tests.prose.texts import of_module, of_page

LONG = " ".join(f"w{number}" for number in range(26))


def said(markdown: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.said) for finding in broken(of_page(markdown))]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One ends. Another begins.", 2),
        ("One ends here; a semicolon ends nothing: nor does a colon.", 1),
        ("Tables, e.g. Airflow's, are few. J. Gray wrote so.", 2),
        ("PostgreSQL 16.14 writes 1.5 rows.", 1),
        ("The file is named. `psql` reads it.", 2),
        ("It asked “why?” Nobody knew.", 2),
    ],
)
def test_a_sentence_ends_where_another_can_begin(text: str, count: int) -> None:
    assert len([*sentences(text)]) == count


def test_a_sentence_is_found_on_its_own_line() -> None:
    assert [*sentences("One\nends. Two\nends. Three.")] == [(0, "One ends."), (1, "Two ends."), (2, "Three.")]


def test_a_span_of_code_is_one_word_and_a_sign_is_none() -> None:
    (block,) = of_page("Write `SELECT 1 FROM t` = [one link](far/away.md), two, too.")
    assert words(block.text) == 6


@pytest.mark.parametrize("text", ["", "- ", "1. ", "| a |\n| --- |\n| "])
def test_a_long_sentence_is_found_wherever_it_stands(text: str) -> None:
    assert said(f"{text}{LONG[3:]}.") == []
    ((line, finding),) = said(f"{text}{LONG}.")
    assert line == text.count("\n") + 1
    assert finding.startswith('26 words: "w0 w1')


@pytest.mark.parametrize("text", [f"# {LONG}", f"```\n{LONG}\n```", f"    {LONG}", f"| {LONG} |\n| --- |"])
def test_headings_and_code_may_be_long(text: str) -> None:
    assert said(text) == []


def test_what_a_program_writes_into_a_page_is_not_measured() -> None:
    generated = f"<!-- rows: begin -->\n\n{LONG}.\n\n<!-- rows: end -->"
    assert said(generated) == []
    assert [line for line, _ in said(f"{generated}\n\n{LONG}.")] == [7]


def test_a_paragraph_of_more_than_eighty_words_is_found() -> None:
    paragraph = "Four words stand here. " * 20
    assert said(paragraph) == []
    ((_, finding),) = said(f"{paragraph}More.")
    assert finding.startswith('a paragraph of 81 words: "Four words')


def test_items_of_a_list_and_rows_of_a_table_are_no_one_paragraph() -> None:
    sentence = "Four words stand here. " * 11
    assert said(f"- {sentence}\n- {sentence}") == []
    assert said(f"| a | b |\n| --- | --- |\n| {sentence * 2} | {sentence} |") == []


@pytest.mark.parametrize("word", ["What", "Who", "Somebody"])
def test_a_sentence_that_names_no_actor_is_found(word: str) -> None:
    assert said(f"It is so. {word} is left, goes.") == [
        (1, f'a sentence begins with "{word}": "{word} is left, goes."')
    ]
    assert said(f"# {word} is left?\n\nIt says {word.lower()} is left. Whatever is left, goes.") == []


def test_docstrings_are_measured_and_other_texts_of_a_module_are_not() -> None:
    source = (
        f'"""Short.\n\n{LONG}.\n"""\n\nTEXT = "{LONG}"\n\nclass A:\n    def b(self):\n        """What."""\n'
    )
    found = [(finding.line, finding.said.split(":")[0]) for finding in broken(of_module(source))]
    assert found == [(3, "26 words"), (10, 'a sentence begins with "What"')]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a first commit, and another with a subject of 73 characters."""
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m"]
    for command in (["git", "init", "-q"], [*commit, "x" * 80], [*commit, "y" * 72], [*commit, "z" * 73]):
        subprocess.run(command, cwd=tmp_path, check=True)
    return tmp_path


def test_a_new_commit_with_a_long_subject_is_found(repository: Path) -> None:
    (finding,) = too_long(repository, "HEAD~2")
    assert finding.endswith(f'73 characters: "{"z" * 73}"')


def test_a_shallow_clone_is_looked_at_as_far_as_it_goes(repository: Path) -> None:
    assert len([*too_long(repository, "0" * 40)]) == 2


def test_without_a_repository_no_commit_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*too_long(tmp_path, "HEAD")] == []
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [*too_long(tmp_path, "HEAD")] == []
