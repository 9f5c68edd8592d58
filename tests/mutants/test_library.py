"""The copy in which mutmut works, and the summary of its results. mutmut itself runs on request (`make mutants`)."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.library import COPIED, PROJECT, STATE, copy_project, line_of, summary

SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["mutmut"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for source in COPIED:
        if source.endswith(".toml"):
            (tmp_path / "project" / source).touch()
        else:
            (tmp_path / "project" / source).mkdir(parents=True)
            (tmp_path / "project" / source / "module.py").write_text("ONE = 1\n")
    return tmp_path / "project"


def test_the_copy_has_the_package_at_its_top_as_it_is_now(project: Path, tmp_path: Path) -> None:
    copy_project(project, tmp_path / "copy")
    (project / "plugins" / "concord" / "module.py").write_text("ONE = 2\n")
    copy_project(project, tmp_path / "copy")
    assert (tmp_path / "copy" / "concord" / "module.py").read_text() == "ONE = 2\n"
    assert not (tmp_path / "copy" / "plugins").exists()


def test_results_are_kept_until_a_file_is_removed(project: Path, tmp_path: Path) -> None:
    copy_project(project, tmp_path / "copy")
    state = tmp_path / "copy" / STATE
    state.mkdir()
    (project / "tests" / "added.py").touch()
    copy_project(project, tmp_path / "copy")
    assert state.exists()
    (project / "tests" / "module.py").rename(project / "tests" / "moved.py")
    copy_project(project, tmp_path / "copy")
    assert not state.exists()


@pytest.mark.parametrize("pattern", SETTINGS["only_mutate"])
def test_modules_to_mutate_exist(pattern: str) -> None:
    assert list((PROJECT / "plugins").glob(pattern))


@pytest.mark.parametrize("path", [*SETTINGS["pytest_add_cli_args_test_selection"], *SETTINGS["also_copy"]])
def test_tests_and_folders_of_the_settings_exist_and_are_copied(path: str) -> None:
    assert (PROJECT / path).exists()
    assert path.split("/", maxsplit=1)[0] in COPIED.values()


def test_a_test_that_is_left_out_exists() -> None:
    [argument] = SETTINGS["pytest_add_cli_args"]
    file, _, name = argument.removeprefix("--deselect=").partition("::")
    assert f"def {name}(" in (PROJECT / file).read_text()


def test_a_change_is_found_in_its_function() -> None:
    text = "def one():\n    return 1\n\nclass Two:\n    def one(self):\n        return 1\n"
    assert line_of(text, "one", "    return 1") == 2
    assert line_of(text, "Two.one", "        return 1") == 6
    assert line_of(text, "Two.one", "not there") == 5


def test_the_summary_counts_mutants_by_how_they_ended() -> None:
    counts = Counter({"killed": 1200, "survived": 3})
    assert summary(counts, 61.4) == "1,203 mutants in 61 s: 1,200 killed, 3 survived"
