"""`python -m tests.docs.coverage`: what shows each item of the checklist of replications, into docs/coverage.md."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tests.conftest import PROJECT
from tests.docs.marks import marks

PAGE = PROJECT / "docs" / "coverage.md"
_HEAD = """# Coverage of transactional replication

`python -m tests.docs.coverage` writes this page from the marks that tests and pages name.
[References](references.md) says what each item asks for. A *central* item is shown by a test. Any other one is shown by
a test, or decided in words on the page that is named. The mark stands in that test's docstring.
"""
#: Pages that list marks, and decide nothing.
_LISTS = {PAGE.name, "references.md", "walk-through.md"}
#: More tests of an item say little more to a reader.
_MOST = 3


@dataclass(frozen=True, slots=True)
class Subject:
    """Items of the checklist that belong together."""

    title: str
    central: Sequence[str]
    others: Sequence[str]


def _items(text: str) -> list[str]:
    """`S0-02 04; S2-12` are S0-02, S0-04 and S2-12."""
    documents = (part.strip().split("-") for part in text.split(";"))
    return [f"{document}-{number}" for document, numbers in documents for number in numbers.split()]


SUBJECTS = (
    Subject(
        "One way: transactions in the order of their commits",
        _items("S0-02 04 09 10 11 12 13 14 15 20 21 24 26 27 28 29 30 31 34 37 38 39; S4-001"),
        _items("S0-07; S4-004"),
    ),
    Subject(
        "Robust replay, change history, and its cost", _items("S0-18 48"), _items("S0-05 41 46 47 49 50")
    ),
    Subject(
        "Both ways, and the log as a source",
        _items("S0-03; S2-06 07 09; S4-120 143 144 145 153"),
        _items("S2-33"),
    ),
    Subject(
        "Queued updating",
        _items("S3-04 05 07 09 11 12 15 16 18 22 23 25 30 31 32 34"),
        _items("S2-04; S3-03 06 33"),
    ),
    Subject(
        "Publications with levels, states and subscriptions",
        _items("S4-034 035 037 111 112 113 114 119 129 140 147 172"),
        _items("S4-042 116 117 118 121 122 123 125 128 133 138 139 146 154 155 156 159 160 167 168 170 171"),
    ),
    Subject("Rules of a publisher", _items("S4-027 059 060 061 062 063 151"), _items("S4-064 072")),
    Subject("Counters that add up", _items("S4-173 179 180"), _items("S2-29 31; S4-174 178 181")),
    Subject(
        "Upkeep of the snapshot log",
        _items("S4-011 018 019 076 078 096 099 101 102 103 104 105 106 107 108"),
        _items("S4-097"),
    ),
    Subject("Objectives for lag and rate", (), _items("S2-10 11")),
    Subject("Calls of procedures", (), _items("S2-12; S4-126 132 141 169")),
    Subject("Hooks, and policies for errors", _items("S2-21 22 24 25; S3-08 13; S4-137 152"), ()),
    Subject("Failover and partitioned publishing", _items("S2-17 23"), _items("S2-01 05 19 27")),
    Subject(
        "Isolation, boundaries and patterns",
        _items("S1-42 54 55; S4-161 162 164 182"),
        _items("S0-52; S2-02 03; S4-163"),
    ),
)


#: Neither shown nor decided so far; the page says so.
OPEN = frozenset[str]()


@cache
def shown() -> Mapping[str, list[str]]:
    """Each mark, and the tests whose docstrings name it."""
    found = defaultdict(list)
    for file in sorted((PROJECT / "tests").rglob("test_*.py")):
        for name, text in _documented(ast.parse(file.read_text())):
            place = str(file.relative_to(PROJECT / "tests"))
            for mark in dict.fromkeys(marks(text)):
                found[mark].append(f"`{place}`" + (f" {_sentence(name)}." if name else "."))
    return found


def _documented(module: ast.Module) -> Iterator[tuple[str, str]]:
    """A test's name and its docstring; the module's own one names no test."""
    yield "", ast.get_docstring(module) or ""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def _sentence(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")


@cache
def told() -> Mapping[str, list[str]]:
    """Each mark, and the pages whose text names it."""
    found = defaultdict(list)
    for page in sorted((PROJECT / "docs").glob("*.md")):
        if page.name not in _LISTS:
            for mark in dict.fromkeys(marks(page.read_text())):
                found[mark].append(f"[{page.stem}]({page.name})")
    return found


def page_now() -> str:
    """The page as tests and pages have it."""
    tests, pages = shown(), told()
    return _HEAD + "".join(_table(each, tests, pages) for each in SUBJECTS)


def _table(subject: Subject, tests: Mapping[str, list[str]], pages: Mapping[str, list[str]]) -> str:
    lines = [f"\n## {subject.title}\n\n| item | central | shown by | told in |\n| --- | --- | --- | --- |\n"]
    for item in sorted([*subject.central, *subject.others]):
        central = "yes" if item in subject.central else ""
        lines.append(
            f"| {item} | {central} | {_few(tests.get(item, []))} | {', '.join(pages.get(item, []))} |\n"
        )
    return "".join(lines)


def _few(names: Sequence[str]) -> str:
    """Those of one test before those of a whole file."""
    chosen = sorted(names, key=lambda name: name.endswith("`."))[:_MOST]
    left = len(names) - len(chosen)
    return " ".join([*chosen, *([f"And {left} more."] if left else [])])


if __name__ == "__main__":
    PAGE.write_text(page_now())
