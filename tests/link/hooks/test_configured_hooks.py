"""Hooks in the configuration: what is understood, and what is refused (S3-13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import ConfigurationInvalid

AUDIT = {"call": "pricing.hooks:audit", "adds": {"public.audit": ["book", "old"]}}
FILE = """
sites:
  london: {{connection: london, log_reader: london_log_reader}}
  capetown: {{connection: capetown, log_reader: capetown_log_reader}}
  oslo: {{connection: oslo}}
replication_sets:
  shop:
    tables:
      - {{table: public.book, hooks: {hooks}{table}}}
      - {{table: public.member}}
{carried}
"""
LINK = "synchronizations:\n  pair: {replication_set: shop, source: london, target: capetown}"
REPLICATION = "replications:\n  way: {replication_set: shop, publisher: london, subscriber: capetown%s}"
Parse = Callable[[str], Configuration]


def written(hooks: Any, carried: str = LINK, table: str = "") -> str:
    return FILE.format(hooks=hooks, carried=carried, table=table)


@pytest.mark.parametrize("carried", [LINK, REPLICATION % ""])
def test_a_hook_stands_at_a_site_that_is_written(parse: Parse, carried: str) -> None:
    found = parse(written({"capetown": AUDIT}, carried))
    tables = found.replication("way").tables if "way" in carried else found.tables("pair")
    hook = tables[0].hooks["capetown"]
    assert hook.call == "pricing.hooks:audit"
    assert [(each.name, each.columns) for each in hook.adds] == [("public.audit", ("book", "old"))]
    assert tables[1].hooks == {}


@pytest.mark.parametrize(
    ("hooks", "carried", "table", "said"),
    [
        ({"capetown": {"call": "import os"}}, LINK, "", "names no function; write package.module:function"),
        ({"cape": AUDIT}, LINK, "", "unknown site 'cape'"),
        ({"oslo": AUDIT}, LINK, "", "nothing writes public.book at 'oslo'"),
        ({"london": AUDIT}, REPLICATION % "", "", "nothing writes public.book at 'london'"),
        ({"capetown": AUDIT}, LINK, ', where: "id > 1"', "the table has a row filter"),
        ({"capetown": AUDIT}, LINK, ", mappings: {oslo: {rename: {id: number}}}", "the table has mappings"),
        ({"capetown": AUDIT}, REPLICATION % ", updates: queued", "", "row versions decide"),
        ({"capetown": AUDIT}, REPLICATION % ", skip: [23505]", "", "no hook would see"),
        (
            {"capetown": AUDIT},
            REPLICATION % ", history: {public.book: {table: public.books}}",
            "",
            "a history is kept of rows as they came",
        ),
        (
            {"capetown": {"call": "a:b", "adds": {"public.member": ["id"]}}},
            LINK,
            "",
            "would not hear of the rows",
        ),
        (
            {"capetown": {"call": "a:b", "adds": {"public.member": ["id"]}}},
            REPLICATION % "",
            "",
            "would not hear of the rows",
        ),
    ],
)
def test_a_hook_that_nobody_can_ask_is_refused(
    parse: Parse, hooks: Any, carried: str, table: str, said: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=said):
        parse(written(hooks, carried, table))
