"""The worked example of docs/change-history.md (S0-49)."""

import re
from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction
from concord.terminal.replicate import show_outcomes
from tests.conftest import PROJECT
from tests.given.replicated_accounts import Make


def test_the_worked_example_does_what_it_says(
    replicated: Make, parse: Callable[[str], Configuration], capsys: pytest.CaptureFixture[str]
) -> None:
    text = (PROJECT / "docs" / "change-history.md").read_text()
    [table, history, work] = re.findall(r"```sql\n-- at \w+\n(.*?)```", text, re.DOTALL)
    [settings] = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    configuration, name = parse(settings), "accounts_kept"
    definition = configuration.replication(name)
    made = (*table.splitlines(), *history.splitlines())
    sites = replicated(made, *definition.tables, history=definition.history)
    sites.initialize()
    sites.london.run(*work.splitlines())
    report = sites.run()
    [told] = re.findall(r"^accounts_kept: .*", text, re.MULTILINE)
    show_outcomes(configuration, name, [(Direction.FORWARD, report)])
    assert capsys.readouterr().out == f"{told}\n"
    found = sites.capetown.rows(
        "SELECT id, version, operation, owner, balance FROM reports.account_history ORDER BY version"
    )
    shown = re.findall(r"^ +\d.*\|.*", text, re.MULTILINE)
    assert [tuple(map(str, row)) for row in found] == [
        tuple(cell.strip() for cell in line.split("|")) for line in shown
    ]
    [query] = re.findall(r"```text\n(SELECT.*?)```", text, re.DOTALL)
    at = "SELECT committed_at::text FROM reports.account_history WHERE version = 2"
    moment = sites.capetown.value(at)
    assert [row[2] for row in sites.capetown.rows(query.replace("2026-11-01", str(moment)))] == [80]
    assert sites.capetown.rows(query.replace("2026-11-01", "infinity")) == []
