"""A function about few conflicts: the driver asks it itself, and shows it what Spark would show it."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from concord.jobs.site import Capture
from concord.rules.policy import Policy
from concord.transmission import route
from spark_jobs.steps import custom
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.merging_pair import STOCK, edit, merging, stock
from tests.given.site import Site
from tests.given.two_sites import Pair, carried

CUSTOM = "custom(tests.given.custom_functions:{})"
HERE = "custom(tests.link.conflicts.test_asked:{})"

#: One type of each way of travelling.
KINDS = {
    "a": ("smallint", "1", "2"),
    "b": ("bigint", "1", "-9007199254740993"),
    "c": ("real", "'1.1'", "'NaN'"),
    "d": ("double precision", "'0.1'", "'-0'"),
    "e": ("boolean", "true", "false"),
    "f": ("bytea", "'\\x00ff'", "''"),
    "g": ("numeric", "1.50", "'NaN'"),
    "h": ("timestamptz", "'2026-01-02 03:04:05.678901+02'", "'infinity'"),
    "i": ("jsonb", """'{"a": [1, null]}'""", "'null'"),
    "j": ("char(4)", "'x'", "''"),
    "k": ("varchar(9)", "'ß\"'", "NULL"),
    "l": ("text[]", "'{a,NULL}'", "'{}'"),
    "m": ("mood", "'sad'", "'glad'"),
    "n": ("short", "'one'", "'two'"),
    "o": ("uuid", "'00000000-0000-0000-0000-000000000001'", "NULL"),
    "p": ("date", "'2026-02-03'", "'-infinity'"),
}
COLUMNS = ", ".join(f"{name} {kind}" for name, (kind, *_) in KINDS.items())
EVERY_KIND = (
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE DOMAIN short AS text NOT NULL CHECK (length(VALUE) < 9)",
    f"CREATE TABLE kinds (id numeric PRIMARY KEY, said text, {COLUMNS})",
)
#: Done by the function while it is asked.
meanwhile: list[Site] = []


def tells(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """Writes what it was shown into the row, but for times of versions; where a side is deleted, into the reason."""
    shown = conflicts.select(["type", "source", "target"]).to_pylist()
    versions = zip(
        *(conflicts.column(f"{side}_version").to_pylist() for side in ("source", "target")), strict=True
    )
    told = [
        f"{conflicts.schema} {each} {[(v['origin'], v['derived']) for v in pair]}"
        for each, pair in zip(shown, versions, strict=True)
    ]
    rows = [
        (each["source"] or each["target"]) | {"said": text} for each, text in zip(shown, told, strict=True)
    ]
    made = pa.array(rows, conflicts.column("source").type)
    return pa.RecordBatch.from_arrays([pa.array(["row"] * len(rows)), made], ["decision", "row"])


def looks_at_locks(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    for site in meanwhile:
        site.run("SELECT 1 FROM stock WHERE id = 1 FOR UPDATE NOWAIT")
    meanwhile[-1].run("DO $$ BEGIN LOCK TABLE stock IN ACCESS EXCLUSIVE MODE NOWAIT; END $$")
    return pa.RecordBatch.from_pydict({"decision": ["source"] * conflicts.num_rows})


def refuse() -> Any:
    raise AssertionError("Spark is not asked")


def with_policy(pair: Pair, *resolvers: str) -> Pair:
    policy = Policy(resolvers=resolvers)
    return replace(pair, tables=tuple(each.model_copy(update={"policy": policy}) for each in pair.tables))


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return replace(pair(*STOCK), spark=refuse)


def test_the_driver_asks_about_few_conflicts_and_begins_no_spark(sites: Pair) -> None:
    sites = merging(sites, CUSTOM.format("by_title"))
    edit(sites, 1, "title = 'both'", "title = 'c'")
    edit(sites, 2, "title = 'undecided'", "title = 'later'")
    report = carried(sites.run("forward"))
    sites.run("reverse")
    assert (report.merged, report.lost) == (1, 1)
    assert stock(sites, "title", "id < 3") == [(1, "both and c"), (2, "later")]


def test_nothing_is_locked_while_it_is_asked(sites: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sites = merging(sites, HERE.format("looks_at_locks"))
    monkeypatch.setattr("tests.link.conflicts.test_asked.meanwhile", list(sites.sites))
    edit(sites, 1, "title = 'a'", "title = 'b'")
    sites.run("forward")
    assert sites.capetown.value("SELECT title FROM stock WHERE id = 1") == "a"


@pytest.mark.parametrize("capture", [Capture.LOG], indirect=True, ids=str)
def test_it_is_shown_a_row_of_which_triggers_told_before_the_log_did(sites: Pair) -> None:
    """Nobody remembers by whom such a row was written, until a link locks it."""
    sites = merging(sites, CUSTOM.format("by_title"))
    edit(sites, 1, "title = 'both'", "title = 'c'")
    with pytest.raises(ConnectionError):
        sites.run("reverse", at=At("cut", broken_off))  # both edits are registered
    sites.capetown.run('UPDATE concord."public.stock" SET concord_written_by = NULL')
    assert carried(sites.run("forward")).merged == 1
    sites.run("reverse")
    assert stock(sites, "title", "id = 1") == [(1, "both and c")]


def broken_off() -> None:
    raise ConnectionError


def test_it_is_shown_no_more_at_once_than_by_spark(sites: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "AT_ONCE", 2)
    sites = merging(sites, CUSTOM.format("breaks"))
    for key in (1, 2, 3):
        edit(sites, key, "seats = 1", "seats = 2")
    sites.london.run("UPDATE plain SET v = 'new'")
    (stopped,) = sites.run("forward").stopped.values()
    assert stopped.startswith("public.stock: 3 conflicts have no decision: ")
    assert ("no idea of 2" in stopped, "no idea of 1" in stopped) == (True, True)


def test_a_numeric_key_that_both_sites_write_differently_is_asked_about(pair: MakePair) -> None:
    sites = replace(pair("CREATE TABLE price (id numeric PRIMARY KEY, title text)"), spark=refuse)
    sites = with_policy(sites, CUSTOM.format("by_title"))
    sites.london.run("INSERT INTO price VALUES (1.0, 'source')")
    sites.capetown.run("INSERT INTO price VALUES (1.00, 'target')")
    sites.settle()
    (conflict,) = sites.conflicts()
    assert conflict["reason"] == "took the source's row"
    assert sites.capetown.rows("SELECT title FROM price") == [("source",)]


@pytest.mark.spark
def test_it_is_shown_the_same_by_the_driver_as_by_spark(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = []
    for most in (10_000, 0):
        monkeypatch.setattr(route, "MOST_UNDER_LOCK", most)
        made = with_policy(pair(*EVERY_KIND), HERE.format("tells"))
        sites = replace(made, spark=refuse) if most else made
        for site, side in ((sites.london, 1), (sites.capetown, 2)):
            values = ", ".join(value[side] for value in KINDS.values())
            nothing = ", ".join("'x'" if name == "n" else "NULL" for name in KINDS)
            site.run(
                f"INSERT INTO kinds VALUES (1, '{site.name}', {values}), (2, '{site.name}', {nothing})",
                f"INSERT INTO kinds VALUES (3, 'here', {values})",
            )
        sites.london.run("DELETE FROM kinds WHERE id = 3")
        sites.run("forward")
        ended.append(sites.capetown.rows("SELECT whole::text FROM kinds whole ORDER BY id"))
    by_driver, by_spark = ended
    assert by_driver == by_spark
    assert "insert_insert" in by_driver[0][0]
    assert "delete_update" in by_driver[2][0]
