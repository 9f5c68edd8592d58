"""The kinds of value that a configuration key can hold."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated, TypeVar
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)

from concord.tables.replication_set import TableName
from concord.values.cron import parse_schedule
from concord.values.duration import parse_duration
from concord.values.identifier import parse_identifier, parse_table_name
from concord.values.size import parse_size

T = TypeVar("T")

_NAME = r"^[a-z][a-z0-9_]{0,62}$"
_ZONE = r"[A-Z][A-Za-z_]+(?:/[A-Za-z0-9_+\-]+)+"
_CONNECTION = r"^[A-Za-z0-9_][A-Za-z0-9_.\-]{0,199}$"
_NUMBER = r"[0-9A-Z]{5}"
#: Classes of errors that the data of one operation can cause (SQLSTATE), those of Concord's own among them. A full
#: disk or a column that was dropped would cause them for every row: none may be skipped (S4-137).
_SKIPPABLE = ("22", "23", "44", "09", "P0", "54", "38", "39", "CNC02", "CNC04", "CNC06", "CNC07", "CNC09")
_POOL = r"^[A-Za-z0-9_][A-Za-z0-9_.\- ]{0,199}$"


class Settings(BaseModel):
    """Frozen values; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def near_miss(word: str, known: Collection[str]) -> str | None:
    """The known word that this one is probably a slip of."""
    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def did_you_mean(word: str, known: Collection[str]) -> str:
    """The near miss, or what there is to choose from."""
    near = near_miss(word, known)
    return f"did you mean '{near}'?" if near else f"known: {', '.join(sorted(known)) or 'none'}"


def is_name(text: str) -> bool:
    """Whether a site, a replication set or a synchronization may be called this."""
    return re.fullmatch(_NAME, text) is not None


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError(
            "not a name; use 1 to 63 lower-case letters, digits and underscores, beginning with a letter"
        )
    return text


def _connection(text: str) -> str:
    if not re.fullmatch(_CONNECTION, text):
        raise ValueError(
            "not the id of an Airflow connection; use letters, digits, '_', '-' and '.', "
            "and keep address and password in Airflow"
        )
    return text


def _pool(text: str) -> str:
    if not re.fullmatch(_POOL, text):
        raise ValueError("not the name of an Airflow pool; use letters, digits, spaces, '_', '-' and '.'")
    return text


def _time_zone(text: str) -> str:
    """By its whole name: abbreviations such as EST mean several zones, and `+02` is read backwards by databases."""
    if text != "UTC" and (not re.fullmatch(_ZONE, text) or text not in available_timezones()):
        near = near_miss(text, available_timezones())
        raise ValueError(
            "not the name of a time zone; "
            + (f"did you mean '{near}'?" if near else "write one such as Africa/Johannesburg, or UTC")
        )
    return text


def _without_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise ValueError("names one thing twice; keep the first")
    return values


def _error_number(value: object) -> str:
    """A YAML file may write 23505 without quotes."""
    text = f"{value:05}" if isinstance(value, int) else str(value)
    if not re.fullmatch(_NUMBER, text):
        raise ValueError(
            "not the number of an error; write the five characters that the last run told, as 23505"
        )
    if not text.startswith(_SKIPPABLE):
        raise ValueError(
            f"{text} is about the server or a table's structure, and would hit every row; mend that instead"
        )
    return text


def _table_name(value: object) -> object:
    return parse_table_name(value) if isinstance(value, str) else value


Name = Annotated[str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": _NAME})]
ConnectionId = Annotated[
    str, AfterValidator(_connection), WithJsonSchema({"type": "string", "pattern": _CONNECTION})
]
PoolName = Annotated[str, AfterValidator(_pool), WithJsonSchema({"type": "string", "pattern": _POOL})]
Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    WithJsonSchema({"type": "string", "examples": ["90s", "15 minutes", "2h", "14 days", "PT15M"]}),
]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema({"type": "string", "examples": ["500 MB", "20 GB"]}),
]
Schedule = Annotated[str, AfterValidator(parse_schedule)]
Table = Annotated[TableName, BeforeValidator(_table_name, json_schema_input_type=str)]
Identifier = Annotated[str, AfterValidator(parse_identifier)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
Key = Annotated[
    tuple[Identifier, ...],
    Field(min_length=1),
    AfterValidator(_without_repeats),
]
ErrorNumber = Annotated[
    str,
    BeforeValidator(_error_number),
    WithJsonSchema({"type": ["string", "integer"], "examples": [23505, "CNC06"]}),
]
#: At least one named part; nobody can change the mapping after parsing.
ByName = Annotated[
    Mapping[Name, T],
    Field(min_length=1, json_schema_extra={"additionalProperties": False}),
    AfterValidator(MappingProxyType),
    PlainSerializer(dict),
]
