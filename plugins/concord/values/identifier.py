"""How the name of a table or column is written: PostgreSQL's own rules for quotes and case (F89)."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

#: PostgreSQL cuts longer names off silently, so that two of them could meet.
_MAX_BYTES = 63
_PART = r'(?:"(?:[^"\0]|"")+"|[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)'
_COLUMN = re.compile(_PART)
_TABLE = re.compile(rf"({_PART})\.({_PART})")
_QUOTING = 'write odd names in double quotes inside single ones, such as \'"Odd ""x""".t\''


class TableName(BaseModel):
    """A schema-qualified table name, exactly as the catalogue spells it (unquoted)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_name: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.name}"


def parse_identifier(text: str) -> str:
    """A column's name as the catalogue spells it: `Year` is `year`, `"Year"` is `Year`. Raises ValueError."""
    if not _COLUMN.fullmatch(text):
        raise ValueError(f"not the name of a column; {_QUOTING}")
    return _unquoted(text)


def parse_table_name(text: str) -> TableName:
    """`schema.name`, each part quoted or not, as the catalogue spells it. Raises ValueError."""
    match = _TABLE.fullmatch(text)
    if match is None:
        raise ValueError(_why_no_table(text))
    schema, name = _unquoted(match[1]), _unquoted(match[2])
    if schema in ("concord", "information_schema") or schema.startswith(("concord_", "pg_")):
        raise ValueError(
            "tables of the database's or Concord's own schemas are not replicated; name your own"
        )
    return TableName(schema_name=schema, name=name)


def _why_no_table(text: str) -> str:
    if _COLUMN.fullmatch(text):
        return "the table's schema is missing; write schema.name, such as public.flights"
    if "*" in text and '"' not in text:
        return "patterns are not supported; list every table by its name"
    return f"not the name of a table; write schema.name, such as public.flights, and {_QUOTING}"


def _unquoted(part: str) -> str:
    name = part[1:-1].replace('""', '"') if part.startswith('"') else _folded(part)
    if len(name.encode()) > _MAX_BYTES:
        raise ValueError(f"longer than {_MAX_BYTES} bytes; PostgreSQL knows no such name, it cuts them off")
    return name


def _folded(part: str) -> str:
    """Lower case for ASCII letters only, as a UTF-8 database does."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in part)
