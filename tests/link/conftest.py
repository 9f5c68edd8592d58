"""Tests of links ask for these."""

from tests.given.fixtures import (
    capture,
    carried_by_spark,
    copies,
    judged,
    late,
    network,
    pair,
    prepared_network,
    prepared_pair,
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
    "prepared_network",
    "prepared_pair",
    "shops",
    "sites",
    "unlike",
]
