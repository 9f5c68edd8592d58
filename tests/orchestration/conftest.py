"""Tests in Airflow ask for these."""

from tests.given.airflow_pair import maker, pair, terminal, unprovisioned
from tests.given.failing_london import failing_london, london_server

__all__ = ["failing_london", "london_server", "maker", "pair", "terminal", "unprovisioned"]
