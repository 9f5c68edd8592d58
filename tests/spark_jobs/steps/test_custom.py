"""The answers that a function must give: every other answer is one clear sentence, and no decision."""

import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from concord.messages.errors import ResolverFailed
from concord.rules.custom_function import function_of
from concord.transmission.verdicts import ASK, FAILED
from spark_jobs.steps import custom
from spark_jobs.steps.custom import Layout
from tests.conftest import PROJECT

LAYOUT = Layout(("id", "title", "data", "ratio"), ("c0", "c1", "c2", "c3"), ("c0",))
NAME = "custom(tests.given.custom_functions:{})"


def batch(function: str, *titles: str, verdict: str = ASK) -> pa.RecordBatch:
    """So many conflicts, and one row that is none."""
    rows = [
        {
            **{"c0": n, "c1": title, "c2": b"\x00", "c3": 1.5, "p_c1": f"c{n}", "p_c2": None, "p_c3": None},
            **{"origin": "london#1", "changed_at": 5, "derived": 0, "deleted": False},
            **{"p_origin": "capetown#1", "p_changed_at": 6, "p_derived": 0, "p_deleted": title == "target"},
            **{"type": "update_update", "publisher": None, "verdict": verdict},
            **{"resolver": NAME.format(function), "reason": ""},
            **{"rest_verdict": "target_wins", "rest_resolver": "latest_timestamp", "rest_reason": "later"},
        }
        for n, title in enumerate(titles)
    ]
    applied = rows[0] | {"verdict": "apply", "resolver": None}
    return pa.RecordBatch.from_pylist([*rows, applied])


def answers(given: pa.RecordBatch) -> list[tuple[str | None, ...]]:
    """Verdict, resolver, reason and new row of the conflicts."""
    found = custom.answered(given, LAYOUT).select([*custom.REST, custom.MERGED]).to_pylist()
    assert (found[-1]["verdict"], found[-1]["merged"]) == ("apply", None)
    return [tuple(row.values()) for row in found[:-1]]


def test_every_decision_becomes_a_verdict_and_undecided_takes_that_of_the_rest_of_the_chain() -> None:
    name = NAME.format("by_title")
    found = answers(batch("by_title", "source", "target", "undecided"))
    assert found == [
        ("source_wins", name, "took the source's row", None),
        ("target_wins", name, "took the target's row", None),
        ("target_wins", "latest_timestamp", f"{name}: undecided; later", None),
    ]


def test_a_new_row_is_told_in_the_texts_that_the_database_reads() -> None:
    ((verdict, _, reason, row),) = answers(batch("doubles", "a"))
    assert (verdict, reason) == ("merged", "made a new row")
    assert row == '{"id": "0", "title": "a", "data": "\\\\x00", "ratio": "3.0"}'


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("breaks", "{} failed: ArithmeticError: no idea of 2"),
        ("leaves", "{} failed: SystemExit: no more of 2"),
        ("talks", "{} said perhaps; it may say source, target, undecided or row"),
        ("is_short", "{} returned 0 decisions on 2 conflicts"),
        ("moves_keys", "{} returned no row, or one of another key; the key must stay"),
        ("forgets_columns", "{} returned rows of other columns; they must be id, title, data, ratio"),
        ("says_row_alone", "{} said row and returned no column row"),
        ("answers_otherwise", "{} must return a pyarrow.RecordBatch with a column decision"),
        ("not_a_function", "{} is no function"),
        ("nobody_wrote_it", "{} cannot be imported: AttributeError"),
    ],
)
def test_no_other_answer_is_a_decision(function: str, said: str) -> None:
    for verdict, resolver, reason, row in answers(batch(function, "a", "b")):
        assert (verdict, resolver, row) == (FAILED, NAME.format(function), None)
        assert reason is not None
        assert reason.startswith(said.format(NAME.format(function)))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("breaks", "{} failed: ArithmeticError in breaks, line"),
        ("talks", "{} said something else; it may say source"),
    ],
)
def test_where_columns_are_private_nothing_that_a_function_says_is_repeated(function: str, told: str) -> None:
    answered = custom.answered(batch(function, "a"), replace(LAYOUT, private=True))
    reason = answered.column("reason")[0].as_py()
    assert reason.startswith(told.format(NAME.format(function)))
    assert [word for word in ("no idea", "perhaps") if word in reason] == []


def test_the_function_in_the_document_does_what_it_says() -> None:
    document = (PROJECT / "docs" / "conflicts.md").read_text()
    (code,) = re.findall(r"```python\n(def cheaper.*?)```", document, re.DOTALL)
    namespace: dict[str, Any] = {"pa": pa}
    exec(code, namespace)  # noqa: S102 - our own document
    rows = [("1.00", "2.00"), ("3.00", "2.00"), ("2.00", "2.00"), (None, "2.00")]
    sides = [
        pa.array([price and {"id": 1, "title": title, "price": price} for price in prices])
        for title, prices in zip("ab", zip(*rows, strict=True), strict=True)
    ]
    answer = namespace["cheaper"](pa.RecordBatch.from_arrays(sides, ["source", "target"]))
    assert answer.column("decision").to_pylist() == ["source", "target", "row", "undecided"]
    assert answer.column("row").to_pylist()[2] == {"id": 1, "title": "a / b", "price": "2.00"}


def test_a_module_that_is_not_there_is_named() -> None:
    said = r"custom\(no\.such:thing\) cannot be imported: ModuleNotFoundError"
    with pytest.raises(ResolverFailed, match=said):
        function_of("no.such:thing")
