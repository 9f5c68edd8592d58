"""Tests at a terminal ask for these."""

from tests.given.airflow_pair import maker, pair, terminal, unprovisioned
from tests.given.fixtures import each_capture

__all__ = ["each_capture", "maker", "pair", "terminal", "unprovisioned"]
