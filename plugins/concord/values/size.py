"""How an amount of bytes is written in the configuration, and told to people."""

from __future__ import annotations

import re

#: As PostgreSQL counts: each 1024 of the one before.
_UNITS = ("B", "kB", "MB", "GB", "TB")
_BY_NAME: dict[str, int] = {unit.lower(): 1024**power for power, unit in enumerate(_UNITS)}
_WRITTEN = re.compile(r"([0-9]{1,9}) ?([a-zA-Z]{1,2})")


def parse_size(value: object) -> int:
    """`500 MB` or `20 GB` as bytes, more than zero; units as PostgreSQL's. Raises ValueError for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
    unit = _BY_NAME.get(found[2].lower()) if found else None
    if found is None or unit is None or int(found[1]) == 0:
        raise ValueError("not an amount of bytes; write a number and a unit, such as 500 MB or 20 GB")
    return int(found[1]) * unit


def size_in_words(size: int) -> str:
    """The largest unit of which there is at least one, with one digit behind the point."""
    power = min((abs(size).bit_length() - 1) // 10, len(_UNITS) - 1) if size else 0
    return f"{size / 1024**power:.1f} {_UNITS[power]}" if power else f"{size} B"
