"""The writes that links may make when nothing is left to carry."""

import pytest
from pyspark.sql import SparkSession

from tests.given.site import Site

#: Rows that two quiescent links, there and back, may write at each end: heartbeat, epochs, sessions.
CONTROL = {"concord.site": 1, "concord.synchronization": 2, "concord.link_state": 2}
#: And at each end whose log is read: how far it is, and which transactions are links'.
CONTROL_OF_LOG = {"concord.log_capture": 2, "concord.applied": 2}


def control(site: Site) -> dict[str, int]:
    return CONTROL | (CONTROL_OF_LOG if site.by_log else {})


def written(site: Site, before: dict[str, int]) -> dict[str, int]:
    return {table: count - before[table] for table, count in site.writes().items() if count > before[table]}


def no_spark() -> SparkSession:
    pytest.fail("a quiescent run started Spark")
