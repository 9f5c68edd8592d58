"""The one place where names and values become SQL text (injection through names is impossible here).

Statements that Concord builds carry no bound parameters: the same text goes to psycopg, to ADBC and to
the DBA who prints it. So a value too must pass through `literal`.
"""

from __future__ import annotations

import hashlib

#: PostgreSQL cuts longer names silently, so that two of them could become one (F89).
LONGEST_NAME = 63


def quote(name: str) -> str:
    """An identifier, always quoted. Raises ValueError for what no database accepts."""
    if not name or "\x00" in name:
        raise ValueError(f"{name!r} cannot be a name")
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str, name: str) -> str:
    """A name in its schema, both quoted."""
    return f"{quote(schema)}.{quote(name)}"


def literal(value: str | int | bool | None) -> str:
    """A constant, whatever `standard_conforming_strings` says of backslashes: the body of a function is read under the
    settings of whoever calls it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if "\x00" in value:
        raise ValueError("a NUL character cannot be sent to PostgreSQL")
    quoted = "'" + value.replace("'", "''") + "'"
    return " E" + quoted.replace("\\", "\\\\") if "\\" in value else quoted


def shortened(name: str) -> str:
    """A name no longer than the limit; a cut one ends in a hash, so that two never collide (F89)."""
    encoded = name.encode()
    if len(encoded) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:12]
    return encoded[: LONGEST_NAME - 13].decode(errors="ignore") + "~" + digest
