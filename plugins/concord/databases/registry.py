"""Which dialects there are."""

from __future__ import annotations

from collections.abc import Mapping

from concord.databases.dialect import Dialect
from concord.databases.postgresql.compared import Compared
from concord.databases.postgresql.ends import Source, Target
from concord.errors import ConnectionRefused

DIALECTS: Mapping[str, Dialect] = {"postgresql": Dialect(Source, Target, Compared)}


def dialect(name: str) -> Dialect:
    """Raises ConnectionRefused for a database that Concord does not know."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise ConnectionRefused(f"{name} is not supported; supported: {', '.join(DIALECTS)}") from None
