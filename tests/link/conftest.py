"""Tests of links ask for these."""

from tests.given.fixtures import (
    capture,
    carried_by_spark,
    copies,
    judged,
    late,
    lived_network,
    lived_pair,
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
    "lived_network",
    "lived_pair",
    "network",
    "pair",
    "shops",
    "sites",
    "unlike",
]
