"""Pydantic's findings about the values, in one clear line each, with the path of the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from concord.configuration.field import did_you_mean, near_miss
from concord.configuration.finding import Finding, Path
from concord.configuration.secret import names_secret

_OF_THE_CONNECTION = (
    "host", "hostname", "port", "user", "username", "login", "database", "dbname", "schema",
    "sslmode", "sslrootcert", "sslcert", "sslkey", "options", "extra",
)  # fmt: skip
_SENTENCES = {
    "missing": "missing; this key has no default",
    "string_type": "text expected; put it in quotes",
    "int_type": "a whole number expected; write digits only, such as 2",
    "bool_type": "true or false expected; write one of the two",
    "tuple_type": "a list expected; write [a, b] or one line '- item' each",
    "dict_type": "a mapping expected; write name: value, indented below the key",
    "model_type": "a mapping expected; write name: value, indented below the key",
    "too_short": "empty; list at least one, or leave the key out where it has a default",
}


def findings(error: ValidationError, model: type[BaseModel]) -> Iterator[Finding]:
    """One finding per mistake: a misspelt key is not also missing, nor a list empty whose items are wrong."""
    details = error.errors(include_url=False, include_input=False)
    consequences = _misspelt(details, model) | _emptied(details)
    for detail in details:
        if (detail["type"], path := _path(detail)) not in consequences:
            yield Finding(path, _sentence(detail, model))


def _misspelt(details: Sequence[ErrorDetails], model: type[BaseModel]) -> set[tuple[str, Path]]:
    """The required keys that an unknown key is the near miss of."""
    unknown = [_path(detail) for detail in details if detail["type"] == "extra_forbidden"]
    return {
        ("missing", (*path[:-1], near))
        for path in unknown
        if (near := near_miss(str(path[-1]), _keys_at(path[:-1], model)))
    }


def _emptied(details: Sequence[ErrorDetails]) -> set[tuple[str, Path]]:
    """pydantic counts the valid items only, so a list whose items are all wrong counts as too short."""
    above = {path[:n] for path in map(_path, details) for n in range(len(path))}
    return {("too_short", path) for path in above}


def _path(detail: ErrorDetails) -> Path:
    """Where the mistake stands; pydantic adds a step '[key]' to a key of a wrong form, but to no unknown one."""
    location: Path = detail["loc"]
    marked = location[-1:] == ("[key]",) and detail["type"] != "extra_forbidden"
    return location[:-1] if marked else location


def _sentence(detail: ErrorDetails, model: type[BaseModel]) -> str:
    facts: Mapping[str, Any] = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            return _unknown_key(_path(detail), model)
        case "value_error":
            return str(facts["error"])
        case "greater_than_equal":
            return f"too small; write {facts['ge']} or more"
        case "less_than_equal":
            return f"too large; write {facts['le']} or less"
        case "literal_error" | "enum":
            return f"unknown value; write {facts['expected']}"
        case kind:
            return _SENTENCES.get(kind, detail["msg"])


def _unknown_key(path: Path, model: type[BaseModel]) -> str:
    key = str(path[-1])
    if names_secret(key):
        return "addresses and secrets do not belong in this file; store them in an Airflow connection"
    if key in _OF_THE_CONNECTION:
        hint = ", or permit plain text by insecure: true" if key == "sslmode" else ""
        return f"unknown key; set it in the Airflow connection{hint}"
    return f"unknown key; {did_you_mean(key, _keys_at(path[:-1], model))}"


def _keys_at(path: Path, model: type[BaseModel]) -> tuple[str, ...]:
    """The keys that the settings at a path know."""
    kind: Any = model
    for part in path:
        settings = isinstance(kind, type) and issubclass(kind, BaseModel)
        kind = _bare(_fields(kind)[part].annotation if settings else _item(kind))
    return tuple(map(str, _fields(kind)))


def _fields(settings: type[BaseModel]) -> dict[str | int, FieldInfo]:
    """The fields of settings by the keys that the file has for them."""
    return {field.alias or name: field for name, field in settings.model_fields.items()}


def _bare(kind: Any) -> Any:
    """The type without its constraints and without None."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    others = [option for option in get_args(kind) if option is not NoneType]
    return _bare(others[0]) if NoneType in get_args(kind) else kind


def _item(kind: Any) -> Any:
    """The type of a mapping's or a list's members."""
    return next(option for option in reversed(get_args(kind)) if option is not Ellipsis)
