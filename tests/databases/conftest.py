"""Tests of a database's rooms ask for these."""

from tests.given.fixtures import (
    capture,
    carried_by_spark,
    copies,
    judged,
    late,
    network,
    pair,
    shops,
    sites,
    unlike,
)

__all__ = [
    "capture",
    "carried_by_spark",
    "copies",
    "judged",
    "late",
    "network",
    "pair",
    "shops",
    "sites",
    "unlike",
]
