"""The runner of planted errors counts kills (`make planted`), here in projects of one or two files."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import run
from tests.mutants.mutant import Mutant
from tests.mutants.results import Results
from tests.mutants.trial import outcome_of, tried

PRODUCT = """\
class ConcordError(Exception):
    '''As the product's own are called.'''

class SiteUnavailable(ConcordError):
    '''A database does not answer.'''

def double(number):
    return 2 * number
"""
IMPORTS = "import pytest, psycopg\nimport product\nfrom product import double\n"
ASSERTS = "def test_it():\n    assert double(2) == 4\n"
EXPECTS = "def test_it():\n    with pytest.raises(TypeError):\n        double(None)\n"
UNPACKS = "def test_it():\n    [only] = 'x' * (double(2) - 3)\n"
DOES = "def test_it():\n    double(2)\n"
SETS_UP = (
    "@pytest.fixture\ndef four():\n    assert double(2) == 4\n\ndef test_it(four):\n    assert four is None\n"
)
CLEARS_UP = (
    "@pytest.fixture\ndef four():\n    yield\n    assert double(2) == 4\n\ndef test_it(four):\n    pass\n"
)
AT_IMPORT = "assert double(2) == 4\n" + ASSERTS
FACTORY = "def test_it(factory):\n    assert factory() == 4\n"
CONFTEST = """\
import pytest
from product import double

@pytest.fixture
def factory():
    def make():
        assert double(2) == 4
        return 4
    return make
"""
WAITS = """\
import os, time

def test_it():
    open('pid', 'w').write(str(os.getpid()))
    time.sleep(100)
"""
TWICE = "import psycopg; raise ConcordError('a row twice') from psycopg.errors.CardinalityViolation('a row twice')"
DOUBLED = "return 2 * number"


@pytest.fixture(autouse=True)
def _no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take a second each time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def project(folder: Path, test: str) -> Path:
    (folder / "tests").mkdir(parents=True)
    (folder / "product.py").write_text(PRODUCT)
    (folder / "tests" / "conftest.py").write_text(CONFTEST)
    (folder / "tests" / "test_it.py").write_text(IMPORTS + test)
    (folder / "pytest.ini").touch()
    return folder


def mutant(new: str, old: str = DOUBLED, name: str = "doubles wrongly") -> Mutant:
    return Mutant(name, "product:double", old, new, "tests/test_it.py")


@pytest.mark.parametrize(
    ("test", "new", "said"),
    [
        (ASSERTS, "return 3 * number", "AssertionError: assert 6 == 4"),
        (EXPECTS, "return number and 2 * number", "Failed: DID NOT RAISE TypeError"),
        (UNPACKS, "return 5", "ValueError: too many values to unpack (expected 1)"),
        (DOES, "raise ConcordError('more than the brakes let pass')", "ConcordError: more than the brakes"),
        (DOES, "import psycopg; raise psycopg.errors.UniqueViolation('taken')", "UniqueViolation: taken"),
        (DOES, TWICE, "ConcordError: a row twice"),
    ],
    ids=[
        "assertion",
        "missing error",
        "not one",
        "product refuses",
        "database refuses data",
        "database refuses, and the product reports it",
    ],
)
def test_a_test_that_finds_the_error_kills(tmp_path: Path, test: str, new: str, said: str) -> None:
    copy = project(tmp_path, test)
    found = tried(mutant(new), copy)
    assert (found.outcome, found.where) == ("killed", "")
    assert found.said.startswith(said)
    assert (copy / "product.py").read_text() == PRODUCT, "the next mutant finds the copy as it was"


def test_a_mutant_that_no_test_finds_is_alive(tmp_path: Path) -> None:
    assert tried(mutant("return 3 * number"), project(tmp_path, DOES)) == ("ALIVE", "", "")


IT = " of tests/test_it.py::test_it"
REFUSED = "raise ConcordError('{}')".format


@pytest.mark.parametrize(
    ("test", "new", "where", "said"),
    [
        (SETS_UP, "return 3 * number", f"setup{IT}", "AssertionError: assert 6 == 4"),
        (CLEARS_UP, "return 3 * number", f"teardown{IT}", "AssertionError: assert 6 == 4"),
        (FACTORY, "return 3 * number", f"fixture{IT}", "AssertionError: assert 6 == 4"),
        (AT_IMPORT, "return 3 * number", "collection of tests/test_it.py", "assert 6 == 4"),
        (ASSERTS, "return 3 number", "pytest (4)", "SyntaxError: invalid syntax"),
        (ASSERTS, "return 2 * its_old_name", f"error{IT}", "NameError: name 'its_old_name' is not defined"),
        (DOES, "import psycopg; raise psycopg.errors.UndefinedTable('gone')", f"error{IT}", "UndefinedTable"),
        (DOES, REFUSED("no such table (SQLSTATE 42P01)"), f"error{IT}", "ConcordError: no such table"),
        (DOES, REFUSED("NameError: name"), f"error{IT}", "ConcordError: NameError"),
        (DOES, "raise SiteUnavailable('no answer')", f"error{IT}", "SiteUnavailable: no answer"),
        (DOES, "raise KeyError('x')", f"error{IT}", "KeyError: 'x'"),
        (ASSERTS, "raise SystemExit(1)", f"error{IT}", "SystemExit: 1"),
        (ASSERTS, "import os; os._exit(1)", "pytest (1)", ""),
    ],
    ids=[
        *("setup", "teardown", "made by a fixture while the test runs", "while collecting", "no program"),
        *(
            "no such name",
            "no such table",
            "product reports no such table",
            "product reports no such name",
            "no answer",
        ),
        *("unexpected error", "exit", "pytest dies"),
    ],
)
def test_a_test_that_could_not_be_run_is_broken(
    tmp_path: Path, test: str, new: str, where: str, said: str
) -> None:
    found = tried(mutant(new), project(tmp_path, test))
    assert (found.outcome, found.where) == ("broken", where)
    assert found.said.startswith(said)


def test_a_failed_assertion_counts_although_a_fixture_fails_later(tmp_path: Path) -> None:
    test = CLEARS_UP.replace("pass", "assert double(2) == 4, 'of the test'")
    found = tried(mutant("return 3 * number"), project(tmp_path, test))
    assert (found.outcome, found.said.splitlines()[0]) == ("killed", "AssertionError: of the test")


def test_a_mutant_that_cannot_be_planted_is_broken(tmp_path: Path) -> None:
    copy = project(tmp_path, ASSERTS)
    assert tried(mutant("return 1", old="return 9"), copy)[:2] == ("broken", "planting")
    assert tried(mutant("x", old="number"), copy).said == (
        "the fragment occurs 2 times in product:double; nearest: return 2 * number | def double(number):"
    )


def test_a_missing_test_is_broken(tmp_path: Path) -> None:
    copy = project(tmp_path, ASSERTS)
    assert outcome_of("tests/test_it.py -k no_such_name", copy)[:2] == ("broken", "pytest (5)")
    assert outcome_of("tests/test_other.py", copy)[:2] == ("broken", "pytest (4)")


def test_a_test_that_make_test_leaves_out_is_broken(tmp_path: Path) -> None:
    copy = project(tmp_path, "@pytest.mark.long\n" + ASSERTS)
    assert tried(KILLED, copy)[:2] == ("broken", "pytest (5)")


@pytest.mark.parametrize(
    ("seconds", "of_pytest", "where"),
    [(5, 600, "time"), (600, 0.5, f"error{IT}")],
    ids=["the runner's own limit", "pytest's limit"],
)
def test_a_test_that_does_not_end_is_broken_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, of_pytest: float, where: str
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p pytest_timeout")
    copy = project(tmp_path, WAITS)
    (copy / "pytest.ini").write_text(f"[pytest]\ntimeout = {of_pytest}\n")
    found = outcome_of("tests/test_it.py", copy, seconds)
    assert (found.outcome, found.where) == ("broken", where)
    assert not Path("/proc", (copy / "pid").read_text()).exists()


def ran(folder: Path, mutants: list[Mutant], results: Path | None = None) -> int:
    return run(mutants, folder, Results(results, folder))


KILLED = mutant("return 3 * number", name="thrice")
LIVES = mutant("return number + number", name="the same in other words")
BROKEN = mutant("return 2 * its_old_name", name="of an older version")


def test_the_run_fails_for_mutants_that_are_alive_or_broken_and_lists_them_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, ASSERTS)
    assert ran(folder, [KILLED]) == 0
    assert ran(folder, [KILLED, LIVES]) == 1
    assert ran(folder, [KILLED, BROKEN]) == 1
    capsys.readouterr()
    assert ran(folder, [BROKEN, KILLED, LIVES]) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "ALIVE: the same in other words",
        f"broken: of an older version: error{IT}",
        "1 killed, 1 alive, 1 broken, of 3 mutants",
    ]


def test_an_interrupted_run_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only a kill is remembered, and only as long as the mutant, its file and its test are as they were."""
    folder, results = project(tmp_path / "project", ASSERTS), tmp_path / "results"
    ran(folder, [KILLED, LIVES], results)
    assert planted_again(folder, results, capsys) == ["the same in other words"]
    (folder / "tests" / "test_it.py").write_text(IMPORTS + ASSERTS + "\n\n")
    assert planted_again(folder, results, capsys) == ["thrice", "the same in other words"]
    (folder / "product.py").write_text(PRODUCT + "\n")
    assert planted_again(folder, results, capsys) == ["thrice", "the same in other words"]


def planted_again(folder: Path, results: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The mutants that a further run tries: each trial adds a line to the results."""
    before = len(results.read_text().splitlines())
    ran(folder, [KILLED, LIVES], results)
    assert "1 killed, 1 alive, 0 broken, of 2 mutants" in capsys.readouterr().out
    return [line.split('"mutant": "')[1].split('"')[0] for line in results.read_text().splitlines()[before:]]
