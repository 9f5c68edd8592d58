"""docs/change-stream.md does what it says, killed between any two of its steps (S0-41)."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from concord import entries
from concord.databases.contract.consumed import Operation
from spark_jobs.consumed import frame_of, typed
from tests.conftest import PROJECT
from tests.given.airflow_pair import Pair
from tests.given.typed_commands import Terminal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

BLOCKS = re.findall(
    r"^```(sql|yaml|python)\n(.*?)^```",
    (PROJECT / "docs" / "change-stream.md").read_text(),
    re.DOTALL | re.MULTILINE,
)
WRITES = next(block for kind, block in BLOCKS if kind == "sql" and "DELETE" in block)
ROWS = re.findall(
    r"^\| (\d) \| (\S+) \| (\S+) \| (.*?) \| (.*?) ?\|$",
    (PROJECT / "docs" / "change-stream.md").read_text(),
    re.M,
)


class Killed(BaseException):
    """Nothing after it is done."""


@pytest.fixture
def bank(request: pytest.FixtureRequest, unprovisioned: Pair, terminal: Terminal) -> Iterator[Pair]:
    """As the page makes it, for each capture."""
    pair, sites = unprovisioned, {"london": unprovisioned.london, "capetown": unprovisioned.capetown}
    for kind, block in BLOCKS:
        if kind == "yaml":
            pair.path.write_text(block + f"    capture: {request.param}\n")
        elif kind == "sql" and block != WRITES:
            first, *statements = block.splitlines()
            sites[first.removeprefix("-- at ")].run("".join(statements))
    assert terminal("provision").status == 0
    assert terminal("replicate", "bank_to_capetown", "--initialize").status == 0
    entries.begin("bank_history")
    yield pair
    pair.london.drop_slots()


def feed() -> Any:
    """The page's own function."""
    made: dict[str, Any] = {}
    [code] = [block for kind, block in BLOCKS if kind == "python"]
    exec(code, made)  # noqa: S102 - the page's text is what is tested
    return made["feed"]


def named(text: str) -> dict[str, str] | None:
    """`{id=1, owner=Ada}`: in whatever order."""
    return dict(pair.split("=") for pair in text[1:-1].split(", ")) if text else None


def history(spark: "SparkSession", place: Path) -> list[tuple[object, ...]]:
    rows = spark.read.parquet(f"{place}/operations").orderBy("number", "seq").collect()
    return [(str(r["seq"]), r["table"], r["operation"], r["key"], r["row"]) for r in rows]


@pytest.mark.parametrize("bank", ["log"], indirect=True)
def test_a_history_is_fed_and_killed_between_any_two_steps_without_a_loss(
    bank: Pair, spark: "SparkSession", tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-41: the page's rows, once each, after a death before the level is kept and one before it is confirmed."""

    def killed(*_: object) -> None:
        raise Killed

    _, *statements = WRITES.splitlines()
    for statement, dies_at in zip(
        statements, ("pathlib.Path.replace", "concord.entries.confirm", ""), strict=True
    ):
        bank.london.run(statement)
        if dies_at:
            with monkeypatch.context() as dying:
                dying.setattr(dies_at, killed)
                with pytest.raises(Killed):
                    feed()(spark, tmp_path)
    assert terminal("replicate", "bank_to_capetown").status == 0, "the replication notices nothing"
    counts = [feed()(spark, tmp_path) for _ in range(2)]
    assert counts == [1, 0]
    assert history(spark, tmp_path) == [(*names, named(key), named(row)) for *names, key, row in ROWS]
    assert len(ROWS) == 5
    shown = terminal("status").out
    assert re.search(r"bank_history +bank_to_capetown +london +\d+ +kept", shown), shown
    [first, second] = [each.run("SELECT id, balance FROM account") for each in (bank.london, bank.capetown)]
    assert first == second


@pytest.mark.parametrize("bank", ["triggers"], indirect=True)
def test_one_table_s_operations_have_columns_of_spark_s_own_types(bank: Pair, spark: "SparkSession") -> None:
    bank.london.run("INSERT INTO account VALUES (1, NULL, 1.50)")
    bank.london.run("DELETE FROM account WHERE id = 1")
    found = entries.read(spark, "bank_history").of("public.account")
    assert found.schema["values"].dataType.simpleString() == "struct<id:int,owner:string,balance:string>"
    rows = [(r["operation"], *r["values"]) for r in found.orderBy("number", "seq").collect()]
    assert rows == [("insert", 1, None, "1.50"), ("delete", 1, None, None)]
    entries.end("bank_history")
    row = {"bytes": r"\x00ff", "truth": "t", "float": "Infinity", "none": None}
    made = Operation(1, datetime(2026, 11, 26, tzinfo=UTC), 1, "public.account", "insert", {}, row)
    types = {"bytes": "binary", "truth": "boolean", "float": "double", "none": "bigint"}
    [[values]] = typed(frame_of(spark, [made]), types).select("values").collect()
    assert tuple(values) == (b"\x00\xff", True, inf, None)
