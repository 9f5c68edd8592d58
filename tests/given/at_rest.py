"""The writes that links may make when nothing is left to carry."""

import pytest
from pyspark.sql import SparkSession

from tests.given.site import Site

#: Rows that two quiescent links, there and back, may write at each end: heartbeat, epochs, sessions.
CONTROL = {"concord.site": 1, "concord.synchronization": 2, "concord.link_state": 2}


def written(site: Site, before: dict[str, int]) -> dict[str, int]:
    return {table: count - before[table] for table, count in site.writes().items() if count > before[table]}


def no_spark() -> SparkSession:
    pytest.fail("a quiescent run started Spark")
