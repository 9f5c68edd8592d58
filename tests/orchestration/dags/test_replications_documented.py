"""The worked example of each kind of replication: docs/replication.md, both-ways.md, queued-updating.md."""

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.conftest import PROJECT
from tests.given.airflow_pair import Pair
from tests.given.replicated_sites import DROP_SLOTS
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow

#: Each page, and its tables.
PAGES = {
    "replication.md": ("account", "movement"),
    "both-ways.md": ("customer",),
    "queued-updating.md": ("preference",),
}
_NUMBER = re.compile(r"\b\d{7,}\b")
#: Numbers of transactions, ids of conflicts, moments.
_VARIES = re.compile(r"\b\d{7,}\b|\b[0-9a-f]{12}\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+\+00)?")


@pytest.fixture
def pair(unprovisioned: Pair) -> Iterator[Pair]:
    yield unprovisioned
    for site in (unprovisioned.london, unprovisioned.capetown):
        site.run(DROP_SLOTS)


@pytest.mark.parametrize("page", PAGES)
def test_the_worked_example_does_what_it_says(page: str, pair: Pair, terminal: Terminal) -> None:
    text = (PROJECT / "docs" / page).read_text()
    sites, number = {"london": pair.london, "capetown": pair.capetown}, ""
    for kind, block in re.findall(r"^```(sql|yaml|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if kind == "yaml":
            pair.path.write_text(block)
        elif kind == "sql":
            first, *statements = block.splitlines()
            for line in statements:
                sites[first.removeprefix("-- at ")].run(line)
        else:
            for command, said in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
                _, out, err = terminal(*shlex.split(_NUMBER.sub(number, command))[3:])
                number = "".join(re.findall(r"entry show \w+ (\d+)", err)) or number
                assert _last_lines(out + err, said) == sorted(_steady(said).splitlines()), command
    for table in PAGES[page]:
        one, other = (site.run(f"TABLE {table} ORDER BY 1") for site in sites.values())
        assert one == other
    for head in re.findall(r"^  replication .*", text, re.MULTILINE):
        [shown] = re.findall(r"^  replication .*", terminal("status").out, re.MULTILINE)
        assert shown.split() == head.split()


def _last_lines(printed: str, said: str) -> list[str]:
    """As many as the page has; conflicts of one decision stand in any order."""
    return sorted(_steady(printed).splitlines()[-len(said.splitlines()) :])


def _steady(text: str) -> str:
    return _VARIES.sub("…", text.rstrip("\n"))
