"""Tables to which a hook adds rows: what makes one unfit is named before anything is written."""

import pytest

from concord.databases.postgresql.hooks import added_rows
from concord.messages.errors import HookFailed
from concord.rules.hook import Added, Hook
from concord.rules.hook_function import Verdict, Word
from concord.values.identifier import parse_table_name
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, made

DDL = (
    "CREATE TABLE book (id int PRIMARY KEY)",
    "CREATE TABLE audit (book int PRIMARY KEY, price int)",
    "CREATE TABLE child (book int PRIMARY KEY CONSTRAINT of_audit REFERENCES audit)",
)
PROBLEMS = {
    ("public.audit", "book price"): "",
    ("public.nowhere", "book"): "public.nowhere, which is not there; make it, or take it out of `adds`",
    ("public.audit", "old book"): "public.audit, which has no column old; correct `adds`",
    (
        "public.child",
        "book",
    ): "public.child, whose foreign key of_audit would not be checked; drop it, or choose another table",
}


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    return written_site(*DDL)


@pytest.mark.parametrize(("named", "problem"), PROBLEMS.items(), ids=str)
def test_a_table_that_cannot_take_the_rows_is_named(
    target: WrittenSite, named: tuple[str, str], problem: str
) -> None:
    table, columns = named
    adds = (Added(table=parse_table_name(table), columns=tuple(columns.split())),)
    target = target.configured(hooks={"capetown": Hook(call="a:b", adds=adds)})
    said = f"capetown: public.book: its hook adds rows to {problem}"
    assert list(added_rows.problems(target.at_hand(), "capetown", target.tables[0])) == (
        [said] if problem else []
    )
    change = Change({"id": 1}, made("london", 20, born=True))
    if not problem:
        target.write(change, ask_hook=lambda hooked, rows: _leaving(rows))
        return
    with pytest.raises(HookFailed, match="Nothing was written"):
        target.write(change, ask_hook=lambda hooked, rows: _leaving(rows))
    assert target.row(1) is None


def _leaving(rows: object) -> list[Word]:
    assert isinstance(rows, list)
    return [Word(Verdict.APPLY, None, "", {}) for _ in rows]


def test_what_another_sites_hook_adds_is_no_matter_of_this_one(target: WrittenSite) -> None:
    adds = (Added(table=parse_table_name("public.nowhere"), columns=("x",)),)
    wanted = target.configured(hooks={"london": Hook(call="a:b", adds=adds)}).tables[0]
    assert list(added_rows.problems(target.at_hand(), "capetown", wanted)) == []
