"""The worked example of docs/calls.md."""

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
    text = (PROJECT / "docs" / "calls.md").read_text()
    [made, granted, called] = re.findall(r"```sql\n-- at \w+\n(.*?)```", text, re.DOTALL)
    [settings] = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    configuration, name = parse(settings), "bank_to_capetown"
    carried = configuration.replication(name).procedures
    sites = replicated(made.splitlines(), "public.account", procedures=carried)
    role = f"accountant_{sites.name}"
    sites.london.run(*granted.replace("accountant", role).splitlines())
    sites.initialize()
    sites.london.run(*called.replace("accountant", role).splitlines())
    report = sites.run()
    sites.london.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    [told] = re.findall(r"^bank_to_capetown: .*", text, re.MULTILINE)
    show_outcomes(configuration, name, [(Direction.FORWARD, report)])
    assert capsys.readouterr().out == f"{told}\n"
    assert sites.capetown.rows("SELECT balance, count(*) FROM account GROUP BY 1") == [(97.5, 1000)]
    assert sites.are_equal()
