"""Tests at a terminal ask for these."""

from tests.given.airflow_pair import maker, pair, terminal, unprovisioned

__all__ = ["maker", "pair", "terminal", "unprovisioned"]
