"""The text of a record, as `format('%s', row)` writes it: which values it holds.

It is read here. A cast in the database would be the table owner's to define, and would run with the rights of whoever
reads.
"""

from __future__ import annotations

import re

#: A value ends at a comma or at the end of the record. One with a special character is quoted, and quotes are doubled.
_VALUE = re.compile(r'(?:"((?:[^"]|"")*)"|([^,")]*))(,|\)\Z)')


def values(text: str) -> list[str | None]:
    """In the order of the columns; NULL is written as nothing at all.

    Raises ValueError for what is no record.
    """
    found, at = list[str | None](), 1
    while text.startswith("(") and at < len(text):
        value = _VALUE.match(text, at)
        if value is None:
            break
        quoted, plain, ends = value.groups()
        found.append(plain or None if quoted is None else quoted.replace('""', '"').replace("\\\\", "\\"))
        at = value.end()
        if ends != "," and at == len(text):
            return found
    raise ValueError("not a record")
