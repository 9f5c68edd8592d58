"""The worked example of docs/topologies.md, typed as it stands there, on three sites."""

import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from concord.configuration.configuration import load
from embedded.postgres import Server
from tests.conftest import PROJECT, Database
from tests.given.airflow_pair import TABLES, Pair, Site, connect_airflow
from tests.given.typed_commands import Terminal

DOCUMENT = (PROJECT / "docs" / "topologies.md").read_text()
BLOCK = re.compile(r"```(yaml|console|sql)\n(.*?)```", re.DOTALL)

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


def blocks() -> Iterator[tuple[str, str]]:
    return ((found[1], found[2]) for found in BLOCK.finditer(DOCUMENT))


@pytest.fixture
def three(
    unprovisioned: Pair, database: Callable[[], Database], server: Server, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Site]:
    """London, Capetown and New York as their owners have them; the configuration is the document's."""
    made = database()
    sites = {"london": unprovisioned.london, "capetown": unprovisioned.capetown, "newyork": Site(made.uri)}
    sites["newyork"].run(TABLES)
    connect_airflow(monkeypatch, "newyork", server, made.name)
    (configuration,) = [block for kind, block in blocks() if kind == "yaml"]
    unprovisioned.path.write_text(configuration)
    return sites


def query(sites: dict[str, Site], block: str) -> None:
    """Statements at a site; what a query answers stands behind it as a comment."""
    name, *lines = block.strip().splitlines()
    for line in lines:
        statement, _, expected = line.partition("-- ")
        answer = sites[name.removeprefix("-- at ")].run(statement)
        assert [str(value) for (value,) in answer] == ([expected] if expected else []), line


def type_in(pair: Pair, terminal: Terminal, command: str) -> None:
    words = shlex.split(command)
    if words[:3] == ["airflow", "dags", "test"]:
        assert pair.run(words[3]).state == "success", command
        return
    if words[3] == "forget":
        lines = pair.path.read_text().splitlines(keepends=True)
        pair.path.write_text("".join(line for line in lines if "newyork" not in line))
    status, _, said = terminal(*words[3:])
    assert status == 0, f"{command}: {said}"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_example_does_what_the_document_says(
    unprovisioned: Pair,
    three: dict[str, Site],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal = Terminal(monkeypatch, capsys)
    for kind, block in blocks():
        if kind == "sql":
            query(three, block)
        if kind == "console":
            for line in block.splitlines():
                type_in(unprovisioned, terminal, line.removeprefix("$ "))
    assert three["london"].run("SELECT count(*) FROM concord.link_state WHERE peer = 'newyork'") == [(0,)]
    assert sorted(load(unprovisioned.path).sites) == ["capetown", "london"]
