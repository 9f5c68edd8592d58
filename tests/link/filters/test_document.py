"""The worked example of docs/filters.md, run as it stands there."""

import re

import pytest
import yaml

from concord.configuration.settings import TableSettings
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.rules.policy import Policy
from tests.conftest import PROJECT
from tests.given.fixtures import MakePair
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

BLOCK = re.compile(r"```(yaml example|sql \w+(?: shows)?)\n(.*?)```", re.DOTALL)


def test_the_example_shows_what_it_says(pair: MakePair) -> None:
    blocks = BLOCK.findall((PROJECT / "docs" / "filters.md").read_text())
    entry = TableSettings.model_validate(yaml.safe_load(blocks.pop(0)[1])[0])
    made = pair(blocks.pop(0)[1])
    sites = Pair(made.london, made.capetown, (entry.replicated(Policy()),), made.spark)
    declare_equal(sites.job())
    shown = 0
    for kind, text in blocks:
        _, name, *shows = kind.split()
        site = getattr(sites, name)
        if not shows:
            site.run(text)
            continue
        sites.settle()
        expected = [line.removeprefix("-- ") for line in text.splitlines() if line.startswith("-- ")]
        assert [" ".join(map(str, row)) for row in site.rows(text)] == expected
        shown += 1
    assert shown == 3
