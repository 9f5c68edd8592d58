"""Tests in Airflow ask for these."""

from tests.given.airflow_pair import pair, terminal, unprovisioned

__all__ = ["pair", "terminal", "unprovisioned"]
