"""Tests of a database's rooms ask for these."""

from tests.given.fixtures import (
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
