"""A planted error is placed by the name of its function and a fragment, wherever the function has moved."""

from pathlib import Path

import pytest

from tests.mutants.mutant import Mutant
from tests.mutants.place import NotPlacedError, definitions, place

MODULE = """\
LIMIT = 10
FIRST, SECOND = "one", "two"

@decorated(10)
def count(rows):
    def each():
        return 10
    return rows + 10

class Table:
    size: int = 10

    @property
    def count(self):
        return 11
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "plugins" / "shop" / "rows").mkdir(parents=True)
    (tmp_path / "plugins" / "shop" / "rows" / "table.py").write_text(MODULE)
    return tmp_path


def mutant(at: str, old: str, new: str = "99") -> Mutant:
    return Mutant("an error", at, old, new, "tests/test_it.py")


@pytest.mark.parametrize(
    ("name", "old", "line"),
    [
        ("LIMIT", "10", "LIMIT = 99"),
        ("SECOND", '"two"', 'FIRST, SECOND = "one", 99'),
        ("count", "decorated(10)", "@99"),
        ("count", "+ 10", "    return rows 99"),
        ("count", "return 10", "        99"),
        ("Table", "10", "    size: int = 99"),
        ("Table.count", "11", "        return 99"),
    ],
    ids=["constant", "one of two", "decorator", "function", "function within", "field", "method"],
)
def test_a_fragment_is_replaced_in_its_definition_alone(
    project: Path, name: str, old: str, line: str
) -> None:
    wrong = mutant(f"shop.rows.table:{name}", old)
    text = place(wrong, project).mutated(wrong)
    assert [new for new in text.splitlines() if new not in MODULE.splitlines()] == [line]
    assert len(text.splitlines()) == len(MODULE.splitlines())


def test_a_function_that_has_moved_to_another_module_is_found(project: Path) -> None:
    package = project / "plugins" / "shop"
    (package / "rows" / "table.py").rename(package / "moved.py")
    assert place(mutant("shop.rows.table:Table.count", "11"), project).file == package / "moved.py"


def test_of_several_functions_of_the_name_the_fragment_chooses(project: Path) -> None:
    (project / "plugins" / "shop" / "other.py").write_text("def count(rows):\n    return rows + 12\n")
    assert place(mutant("shop.gone:count", "12"), project).file.name == "other.py"
    assert place(mutant("shop.gone:count", "+ 10"), project).file.name == "table.py"
    with pytest.raises(
        NotPlacedError, match=r"count exists 2 times \(plugins/shop/other.py, plugins/shop/rows"
    ):
        place(mutant("shop.gone:count", "rows +"), project)


@pytest.mark.parametrize(
    ("at", "old", "message"),
    [
        (
            "shop.rows.table:counts",
            "10",
            "shop.rows.table:counts does not exist; nearest: count | Table.count",
        ),
        (
            "shop.rows.table:Table.count",
            "return 12",
            "the fragment occurs 0 times in shop.rows.table:Table.count; nearest: return 11",
        ),
        ("shop.rows.table:count", "10", "the fragment occurs 3 times in shop.rows.table:count; nearest: "),
        ("bakery.rows:count", "10", "bakery.rows:count does not exist; nearest: nothing"),
    ],
    ids=["renamed function", "changed fragment", "fragment of several lines", "unknown package"],
)
def test_an_error_without_a_place_names_the_nearest_candidates(
    project: Path, at: str, old: str, message: str
) -> None:
    with pytest.raises(NotPlacedError) as raised:
        place(mutant(at, old), project)
    assert str(raised.value).startswith(message)


def test_offsets_count_characters_of_any_width() -> None:
    [definition] = definitions("# … é\ndef count():\n    return '…'\n")
    assert (definition.start, definition.source) == (6, "def count():\n    return '…'\n")
