"""Plays a page: statements at its sites, files of configuration, and commands with the lines that they print."""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.given.airflow_pair import Site
from tests.given.typed_commands import Terminal

_BLOCK = re.compile(
    r"^```(sql|yaml|console)\n(.*?)^```|^<!-- (\w+) (fails|is back) -->$", re.DOTALL | re.MULTILINE
)
_NUMBER = re.compile(r"\b\d{7,}\b")
#: Numbers of transactions, ids of conflicts, moments, seconds, addresses.
_VARIES = re.compile(
    r"\b\d{7,}\b|\b[0-9a-f]{12}\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+\+00)?|\d+\.\d s\b|\([\w.]+:\d{4,5}\)"
)


@dataclass
class Page:
    """Where its blocks go. `fails` and `returns` get the name of a site, for pages on which one fails."""

    path: Path
    sites: Mapping[str, Site]
    terminal: Terminal
    fails: Callable[[str], None] | None = None
    returns: Callable[[str], None] | None = None
    exact: bool = True  #: a command prints nothing after the page's lines, and nothing between them
    number: str = ""

    def play(self, text: str) -> None:
        """Each block in its order. Fails where a statement or a command says something else than the page."""
        for kind, block, site, happens in _BLOCK.findall(text):
            if happens:
                change = self.fails if happens == "fails" else self.returns
                assert change
                change(site)
            elif kind == "yaml":
                self.path.write_text(block)
            elif kind == "sql":
                self._state(block)
            else:
                self._type(block)

    def _state(self, block: str) -> None:
        """Statements, a line each; behind one stand the rows that it returns, or who refuses it."""
        first, *lines = block.splitlines()
        for line in lines:
            statement, _, said = line.partition(" -- ")
            for name in self._named(first.removeprefix("-- at ")):
                if said.startswith("refused: "):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=said[9:]):
                        self.sites[name].run(statement)
                else:
                    rows = self.sites[name].run(statement)
                    assert "; ".join(" ".join(map(str, row)) for row in rows) == said.strip(), statement

    def _named(self, at: str) -> list[str]:
        return list(self.sites) if at == "both" else at.split(" and ")

    def _type(self, block: str) -> None:
        for command, said in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
            _, out, err = self.terminal(*shlex.split(_NUMBER.sub(self.number, command))[3:])
            self.number = "".join(re.findall(r"entry show \w+ (\d+)", err)[:1]) or self.number
            printed = _steady(out + err)
            expected = _steady(said)
            if self.exact:
                # conflicts of one decision stand in any order
                assert sorted(printed[len(printed) - len(expected) :]) == sorted(expected), (
                    f"{command}: {printed}"
                )
            else:
                assert [line for line in expected if line not in printed] == [], f"{command}: {printed}"


def _steady(text: str) -> list[str]:
    return [" ".join(line.split()) for line in _VARIES.sub("…", text).splitlines() if line.strip()]
