"""Two sites that keep one table differently, as a configuration file says it."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.provisioning import Installation
from concord.tables.replication_set import ReplicatedTable
from tests.given.bare_sites import installation
from tests.given.site import Site
from tests.given.two_sites import Pair

CONFIGURATION = """\
sites:
  london: {{connection: london}}
  capetown: {{connection: capetown}}
replication_sets:
  accounts:
    tables:
{entries}
synchronizations:
  london_capetown: {{replication_set: accounts, source: london, target: capetown}}
"""


def configured(entries: str, directory: Path) -> tuple[ReplicatedTable, ...]:
    """The tables of a replication set, read from a file as a user writes it."""
    path = directory / "concord.yaml"
    path.write_text(CONFIGURATION.format(entries=textwrap.indent(textwrap.dedent(entries).strip(), " " * 6)))
    configuration = load(path)
    return tuple(configuration.tables("london_capetown"))


def installations(sites: Sequence[Site], tables: tuple[ReplicatedTable, ...]) -> list[Installation]:
    return [installation(site, tables) for site in sites]


def begin_mapped(
    london: Site, capetown: Site, tables: tuple[ReplicatedTable, ...], spark: Callable[[], SparkSession]
) -> Pair:
    """Provision both sites together, declare them equal."""
    provisioning.provision(installations((london, capetown), tables))
    pair = Pair(london, capetown, tables, spark)
    declare_equal(pair.job())
    return pair
