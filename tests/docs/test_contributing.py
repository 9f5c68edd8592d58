"""The page for contributors names files and commands that are there."""

import re
import subprocess

import pytest

from tests.conftest import PROJECT

PAGE = (PROJECT / "docs" / "contributing.md").read_text()
PATHS = sorted(set(re.findall(r"`((?:plugins|spark_jobs|tests|docs|config)/[\w./]+)`", PAGE)))
NAMED = sorted(set(re.findall(r"`(\w+)` in `([\w./]+\.py)`", PAGE)))


@pytest.mark.parametrize("path", PATHS)
def test_a_file_or_folder_that_the_page_names_is_there(path: str) -> None:
    assert (PROJECT / path).exists()


@pytest.mark.parametrize(("name", "path"), NAMED)
def test_a_file_has_what_the_page_says_it_has(name: str, path: str) -> None:
    assert re.search(rf"^(class )?{name}\b", (PROJECT / path).read_text(), re.MULTILINE)


def test_every_module_that_writes_documents_is_named() -> None:
    writers = [
        path.stem for path in (PROJECT / "tests" / "docs").glob("[!t]*.py") if "__main__" in path.read_text()
    ]
    assert writers
    assert {f"tests.docs.{name}" for name in writers} <= set(re.findall(r"python -m ([\w.]+)", PAGE))


def test_blame_passes_over_commits_that_are_there() -> None:
    """Where the history is whole; a shallow clone lacks most of them."""
    lines = (PROJECT / ".git-blame-ignore-revs").read_text().splitlines()
    commits = [line for line in lines if line and not line.startswith("#")]
    assert commits
    assert [commit for commit in commits if not re.fullmatch(r"[0-9a-f]{40}", commit)] == []
    if git("rev-parse", "--is-shallow-repository").stdout == "false\n":
        assert git("cat-file", "--batch-check", said="\n".join(commits)).stdout.count(" commit ") == len(
            commits
        )


def git(*command: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *command], cwd=PROJECT, input=said, capture_output=True, text=True, check=False
    )
