"""The order in which files of tests are run."""

import pytest

from tests.suite.order import ordered, rooms_of

MARKERS = "[pytest]\nmarkers =\n  long: takes long\n  spark: starts a JVM\n"


def test_changed_rooms_come_first_and_in_each_part_the_files_that_take_long(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini(MARKERS)
    spark = "import pytest\npytestmark = pytest.mark.spark\n"
    files = {
        "tests/rules/test_quick.py": "def test_b(): ...\ndef test_a(): ...\n",
        "tests/link/test_quick.py": "def test_c(): ...\n",
        "tests/link/test_slow.py": spark + "def test_d(): ...\n",
        "tests/rules/test_slow.py": spark + "def test_e(): ...\n",
    }
    for name, text in files.items():
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    items, _ = pytester.inline_genitems("--import-mode=importlib", pytester.path)
    found = ordered(items, pytester.path, {"rules"})
    assert [item.name for item in found] == ["test_e", "test_b", "test_a", "test_d", "test_c"]


@pytest.mark.parametrize(
    ("file", "room"),
    [
        ("plugins/concord/rules/brake.py", "rules"),
        ("plugins/concord/databases/postgresql/write/guard.py", "databases/postgresql/write"),
        ("spark_jobs/steps/resolve.py", "spark_jobs/steps"),
        ("tests/link/filters/test_filters.py", "link/filters"),
        ("docs/filters.md", "docs"),
        ("README.md", ""),
    ],
)
def test_a_file_belongs_to_the_room_that_tests_it(file: str, room: str) -> None:
    assert rooms_of([file]) == {room}
