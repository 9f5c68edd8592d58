"""The transcripts of docs/waiting.md, run as they stand there."""

import re

import pytest

from tests.conftest import PROJECT
from tests.link.conftest import MakePair
from tests.link.pair import Pair

pytestmark = pytest.mark.spark

BLOCK = re.compile(r"```sql (\w+)( shows)?\n(.*?)```", re.DOTALL)


def section(title: str) -> list[tuple[str, str, str]]:
    """The blocks under a heading: where, whether it shows something, and the statements."""
    text = (PROJECT / "docs" / "waiting.md").read_text().partition(f"\n## {title}\n")[2]
    return BLOCK.findall(text.partition("\n## ")[0])


def follow(sites: Pair, blocks: list[tuple[str, str, str]]) -> int:
    """Type the blocks; a run goes before each that shows something. How many did."""
    shown = 0
    for name, shows, text in blocks:
        site = getattr(sites, name)
        if not shows:
            site.run(text)
            continue
        sites.run()
        expected = [line.removeprefix("-- ") for line in text.splitlines() if line.startswith("-- ")]
        assert [" ".join(map(str, row)) for row in site.rows(text)] == expected
        shown += 1
    return shown


def test_quarantine_and_retry_are_as_documented(pair: MakePair) -> None:
    (_, _, tables), *blocks = section("Quarantine and retry")
    sites = pair(tables)
    assert follow(sites, blocks) == 4
    sites.settle()
    assert sites.equal
