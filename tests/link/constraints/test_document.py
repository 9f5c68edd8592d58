"""The transcripts of docs/conflicts.md about constraints, run as they stand there."""

import re

from tests.conftest import PROJECT
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import settle

BLOCK = re.compile(r"```sql (london|capetown|both)( shows)?\n(.*?)```", re.DOTALL)


def test_the_transcripts_about_constraints_are_as_documented(pair: MakePair) -> None:
    text = (
        (PROJECT / "docs" / "conflicts.md")
        .read_text()
        .partition("\n## Constraints\n")[2]
        .partition("\n## ")[0]
    )
    (_, _, tables), *blocks = BLOCK.findall(text)
    sites, shown = pair(tables), 0
    for where, shows, statements in blocks:
        if not shows:
            getattr(sites, where).run(statements)
            continue
        settle(sites)
        expected = [line.removeprefix("-- ") for line in statements.splitlines() if line.startswith("-- ")]
        for site in sites.sites if where == "both" else (getattr(sites, where),):
            assert [" ".join(map(str, row)) for row in site.rows(statements)] == expected
            shown += 1
    assert shown == 6
    assert sites.equal
