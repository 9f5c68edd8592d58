"""The story names files and functions that are there."""

import re

import pytest

from tests.conftest import PROJECT

PAGE = (PROJECT / "docs" / "how-it-works.md").read_text()
SECTION = PAGE.partition("## In the code")[2].partition("\n## ")[0]
SHORT = "PG/", "plugins/concord/databases/postgresql/"
#: Names, then the file that has them.
NAMED = re.compile(r"((?:`\w+`(?:, | and )?)+) in \[?`([\w./]+\.py)`")
PLACES = sorted(
    {
        (name, path.replace(*SHORT))
        for names, path in NAMED.findall(SECTION)
        for name in re.findall(r"`(\w+)`", names)
    }
)


def test_the_page_names_functions() -> None:
    assert len(PLACES) > 10


@pytest.mark.parametrize(("name", "path"), PLACES)
def test_a_file_has_what_the_page_says_of_it(name: str, path: str) -> None:
    assert re.search(rf"^(?:def|class) {name}\b", (PROJECT / path).read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+(?:/|\.py))`", SECTION))))
def test_a_file_or_folder_that_the_page_names_is_there(path: str) -> None:
    assert (PROJECT / path.replace(*SHORT)).exists()
