"""The parts of a log entry or of a waiting row, as a site stores them in JSON.

Whoever may write there can have stored any JSON. Each function returns a value of its kind, whatever it is given: what
is none is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from concord.versions.row_version import vector_of

#: The numbers of a version: those of its column in a shadow table.
_MOST = {"changed_at": (1 << 63) - 1, "derived": (1 << 31) - 1}

#: The parts that tell one version from another; entries of early releases may have none of them.
PARTS = frozenset({"origin", "changed_at", "derived", "vector", "deleted"})

#: Parts of a waiting row's version beside those.
_FLAGS = ("deleted", "born", "out_of_scope", "agreed")


def key_of(stored: object) -> list[str | None]:
    """The parts of a key."""
    return [_text(part) for part in stored] if isinstance(stored, list) else []


def image_of(stored: object) -> dict[str, str | None] | None:
    """A row; None where that version is a delete."""
    if stored is None:
        return None
    return {name: _text(value) for name, value in stored.items()} if isinstance(stored, dict) else {}


def version_of(stored: object) -> dict[str, Any]:
    """Those parts of a version that are of their kinds."""
    if not isinstance(stored, Mapping):
        return {}
    return {name: value for name, value in stored.items() if _is_part(name, value)}


def withheld_of(stored: object) -> dict[str, Any] | None:
    """The columns and parts of the key that an entry does not show."""
    if not isinstance(stored, dict):
        return None
    columns, key = stored.get("columns"), stored.get("key")
    named = (
        {"columns": {name: str(how) for name, how in columns.items()}} if isinstance(columns, dict) else {}
    )
    return named | ({"key": key_of(key)} if key is not None else {})


def _is_part(name: str, value: object) -> bool:
    if name == "origin":
        return isinstance(value, str)
    if name in _MOST:
        return type(value) is int and -_MOST[name] - 1 <= value <= _MOST[name]
    if name == "vector":
        return isinstance(value, dict) and len(vector_of(value)) == len(value)
    return name in _FLAGS and isinstance(value, bool)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):
        return ""
