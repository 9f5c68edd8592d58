"""A count stands before its noun as people say it: 0 rows, 1 row, 2 rows."""

import re
from pathlib import Path

from concord.messages.how_many import how_many

PROJECT = Path(__file__).resolve().parents[2]
NOUNS = "row|table|conflict|flight|change|delete|tombstone|key|version|decision|site|difference"
#: A number of the program's own is always the same; one that is counted may be one.
COUNTED = re.compile(rf"\{{(?![A-Z_]+[:}}])[^{{}}]+\}} (?:{NOUNS})s\b")


def test_only_one_is_singular_and_thousands_are_set_apart() -> None:
    said = [how_many(number, "row") for number in (0, 1, 2, 12_345)]
    assert said == ["0 rows", "1 row", "2 rows", "12,345 rows"]
    assert how_many(1, "row was", "rows were") == "1 row was"
    assert how_many(2, "row was", "rows were") == "2 rows were"


def test_no_sentence_puts_a_count_before_a_noun_by_itself() -> None:
    found = [
        f"{path.relative_to(PROJECT)}:{number}"
        for folder in ("plugins", "spark_jobs", "demo", "dags")
        for path in sorted((PROJECT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\bf[\"']", line) and COUNTED.search(line)
    ]
    assert found == []
