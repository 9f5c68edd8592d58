"""The worked example of each kind of replication: docs/replication.md, both-ways.md, queued-updating.md."""

import re
from collections.abc import Iterator

import pytest

from tests.conftest import PROJECT
from tests.given.airflow_pair import Pair
from tests.given.typed_commands import Terminal
from tests.given.typed_page import Page

pytestmark = pytest.mark.airflow

#: Each page, and its tables.
PAGES = {
    "replication.md": ("account", "movement"),
    "both-ways.md": ("customer",),
    "queued-updating.md": ("preference",),
}


@pytest.fixture
def pair(unprovisioned: Pair) -> Iterator[Pair]:
    yield unprovisioned
    for site in (unprovisioned.london, unprovisioned.capetown):
        site.drop_slots()


@pytest.mark.parametrize("page", PAGES)
def test_the_worked_example_does_what_it_says(page: str, pair: Pair, terminal: Terminal) -> None:
    text = (PROJECT / "docs" / page).read_text()
    sites = {"london": pair.london, "capetown": pair.capetown}
    Page(pair.path, sites, terminal).play(text)
    for table in PAGES[page]:
        one, other = (site.run(f"TABLE {table} ORDER BY 1") for site in sites.values())
        assert one == other
    for head in re.findall(r"^  replication .*", text, re.MULTILINE):
        [shown] = re.findall(r"^  replication .*", terminal("status").out, re.MULTILINE)
        assert shown.split() == head.split()
