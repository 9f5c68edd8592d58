"""A waiting row that was made up stops nothing: it is left out by name, and the rest of the link is written."""

import json
import time

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.ledger import waiting_table
from concord.databases.postgresql.rows import repetition
from concord.databases.postgresql.upkeep.decide import Desk
from concord.messages.errors import ConcordError
from tests.given.any_json import ANY_JSON, TEXTS, either
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import LINK, SYNCHRONIZATION, Change, WrittenSite, made

ITEM = ("CREATE TABLE item (id int PRIMARY KEY, token text, at timestamptz, price numeric(5, 2))",)
ROW = {"id": "1", "token": "waits", "at": None, "price": "1.50"}
VERSION = {
    "origin": "london#1",
    "changed_at": 20,
    "derived": 0,
    "vector": {"london#1": [20, 0]},
    "deleted": False,
    "born": True,
    "out_of_scope": False,
}


@pytest.fixture
def target(written_site: MakeWritten, monkeypatch: pytest.MonkeyPatch) -> WrittenSite:
    monkeypatch.setattr(repetition, "PATIENCE", 1.0)
    return written_site(*ITEM)


@st.composite
def entries(draw: st.DrawFn) -> dict[str, str]:
    return {
        "key": literal(draw(either(["1"], ANY_JSON.filter(lambda text: len(text) < 500)))) + "::jsonb",
        "version": literal(draw(either(VERSION))) + "::jsonb",
        "row_image": literal(draw(either(ROW))) + "::jsonb",
        "against": literal(draw(either(VERSION))) + "::jsonb",
        "kind": literal(draw(st.sampled_from(["held", "quarantined"]))),
        "reason": literal(draw(TEXTS)),
        "since": literal(draw(st.sampled_from(["infinity", "-infinity", "4000-01-01 BC", "now"]))),
        "tries": str(draw(st.sampled_from([0, (1 << 31) - 1]))),
    }


def store(target: WrittenSite, entry: dict[str, str]) -> None:
    structure = target.shape().table.structure
    fixed = {
        "link": LINK,
        "table_name": "public.item",
        "synchronization": SYNCHRONIZATION,
        "structure": structure,
    }
    columns = {**{name: literal(value) for name, value in fixed.items()}, "transmission": "''", **entry}
    target.site.run(
        f"INSERT INTO concord.waiting ({', '.join(columns)}) VALUES ({', '.join(columns.values())})"
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entry=entries())
def test_whatever_waits_the_rest_of_the_link_is_written_and_listed(
    target: WrittenSite, entry: dict[str, str]
) -> None:
    target.empty()
    store(target, entry)
    for key in (2, 3):
        other = {"id": key, "token": "other", "at": None, "price": None}
        counts = target.write(Change(other, made("london", time.time_ns() // 1000, born=True))).counts
        assert counts["applied"] >= 1
        row = target.row(key)
        assert row is not None
        assert row["token"] == "other"
    target.site.as_application("INSERT INTO item (id, token) VALUES (9, 'a user')")
    desk = Desk(target.job())
    try:
        for each in desk.entries(10):
            assert each.id
            assert each.name is not None
            for decide in (desk.retry, lambda row: desk.decide(row, "source", "ada")):
                try:
                    decide(each)
                except ConcordError as error:
                    event(type(error).__name__)
    finally:
        desk.close()
    for unconfigured in waiting_table.others(target.access, []):
        assert unconfigured.id


def test_a_row_whose_tries_cannot_be_counted_further_waits_on(target: WrittenSite) -> None:
    """It is refused by the site, in each run."""
    refused = literal('{"id": "1", "token": null, "at": null, "price": "1000"}')
    entry = {
        "key": "'[\"1\"]'",
        "version": literal(json.dumps(VERSION)),
        "row_image": refused,
        "tries": "2147483647",
    }
    store(target, {**entry, "kind": "'quarantined'", "reason": "''"})
    other = {"id": 2, "token": "other", "at": None, "price": None}
    target.write(Change(other, made("london", 20, born=True)))
    assert target.site.rows("SELECT tries FROM concord.waiting") == [(2147483647,)]


@pytest.mark.parametrize(
    ("part", "stored"),
    [
        ("row_image", '{"id": "one", "token": "x"}'),
        ("row_image", '{"token": "x"}'),
        ("row_image", "[]"),
        ("version", '{"changed_at": 1e400}'),
        ("version", "7"),
        *(
            ("version", json.dumps({name: value for name, value in VERSION.items() if name != missing}))
            for missing in ("origin", "changed_at", "derived", "vector", "deleted", "born")
        ),
    ],
)
def test_a_waiting_row_that_is_none_is_left_out_by_name(target: WrittenSite, part: str, stored: str) -> None:
    usual = {"key": "'[\"1\"]'", "version": literal("{}"), "row_image": literal('{"id": "1"}')}
    store(target, {**usual, "kind": "'quarantined'", "reason": "''", part: literal(stored)})
    other = {"id": 2, "token": "other", "at": None, "price": None}
    assert target.write(Change(other, made("london", 20, born=True))).counts == {"acquired": 1, "applied": 1}
    [(_, reason)] = target.waiting()
    assert reason.startswith("what waits here is not as Concord wrote it")
