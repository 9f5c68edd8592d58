"""The transcripts of docs/waiting.md, run as they stand there."""

import json
import re
from contextlib import closing
from dataclasses import replace

import pytest

from concord.databases.postgresql.upkeep.decide import Desk
from concord.rules.policy import Policy
from concord.terminal.waiting import shown
from tests.conftest import PROJECT
from tests.given.fixtures import MakePair
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

BLOCK = re.compile(r"```(?:sql )?(\w+)( shows)?\n(.*?)```", re.DOTALL)


def section(title: str) -> list[tuple[str, str, str]]:
    """The blocks under a heading: where, whether it shows something, and the statements."""
    text = (PROJECT / "docs" / "waiting.md").read_text().partition(f"\n## {title}\n")[2]
    return BLOCK.findall(text.partition("\n## ")[0])


def follow(sites: Pair, blocks: list[tuple[str, str, str]]) -> int:
    """Type the blocks; a run goes before each that shows something. How many did."""
    shown = 0
    for name, shows, text in blocks:
        if name == "decide":
            decide(sites, text)
            continue
        site = getattr(sites, name)
        if not shows:
            site.run(text)
            continue
        sites.settle()
        expected = [line.removeprefix("-- ") for line in text.splitlines() if line.startswith("-- ")]
        assert [" ".join(map(str, row)) for row in site.rows(text)] == expected
        shown += 1
    return shown


def decide(sites: Pair, text: str) -> None:
    """The row that waits is as listed; somebody gives the columns that are to stand."""
    listed, given = (line.partition(": ")[2] for line in text.splitlines())
    with closing(Desk(sites.job())) as desk:
        (row,) = desk.entries(10)
        names = ["title", "price"]
        ours, theirs = shown(row.incoming_row, names), shown(row.present_row, names)
        assert listed == f"london has {ours}; capetown has {theirs}"
        desk.decide(row, json.loads(given.removeprefix("--row ")), "Ada")


def test_hold_and_decide_are_as_documented(pair: MakePair) -> None:
    _, (_, _, tables), *blocks = section("Hold and decide")
    sites = pair(tables)
    policy = Policy(resolvers=("hold",))
    held = tuple(table.model_copy(update={"policy": policy}) for table in sites.tables)
    assert follow(replace(sites, tables=held), blocks) == 5
    assert sites.equal


def test_quarantine_and_retry_are_as_documented(pair: MakePair) -> None:
    (_, _, tables), *blocks = section("Quarantine and retry")
    sites = pair(tables)
    assert follow(sites, blocks) == 4
    sites.settle()
    assert sites.equal
