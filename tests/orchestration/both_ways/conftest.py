"""Replications need no Spark, and its server takes long to start."""

from pathlib import Path

import pytest

from tests.given.airflow_pair import PairMaker


@pytest.fixture
def maker(airflow_logins: None, airflow_home: Path, tmp_path: Path) -> PairMaker:
    return PairMaker("spark://localhost", tmp_path)
