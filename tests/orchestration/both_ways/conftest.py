"""Replications need no Spark, and its server takes long to start."""

from pathlib import Path

import pytest

from embedded.postgres import Server
from tests.given.airflow_pair import PairMaker


@pytest.fixture
def maker(server: Server, airflow_logins: None, airflow_home: Path, tmp_path: Path) -> PairMaker:
    return PairMaker(server, "spark://localhost", tmp_path)
