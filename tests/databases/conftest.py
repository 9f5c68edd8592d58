"""Tests of a database's rooms ask for these."""

from tests.given.fixtures import (
    capture,
    carried_by_spark,
    copies,
    judged,
    late,
    network,
    pair,
    provisioned_targets,
    shops,
    sites,
    unlike,
    written_site,
)

__all__ = [
    "capture",
    "carried_by_spark",
    "copies",
    "judged",
    "late",
    "network",
    "pair",
    "provisioned_targets",
    "shops",
    "sites",
    "unlike",
    "written_site",
]
