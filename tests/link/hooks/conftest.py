"""The reader of configurations, beside the sites that all tests of links have."""

from tests.configuration.conftest import parse

__all__ = ["parse"]
