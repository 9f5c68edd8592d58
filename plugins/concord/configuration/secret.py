"""Which keys and values look like an address or a password: refused anywhere, repeated nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from concord.tables.row_filter_text import parse_row_filter

_SECRET_KEY = re.compile(
    r"(?:^|[_-])(?:passwords?|passwd|passphrase|pwd|pass|secrets?|tokens?|credentials?|api_?key|private_?key|"
    r"url|uri|dsn|jdbc|conninfo)(?:$|[_-])|password|passwd",
    re.IGNORECASE,
)
#: A URL, a password parameter, or user:password@host.
_SECRET_VALUE = re.compile(
    r"[a-z][a-z0-9+.-]{0,20}:/|^jdbc:|(?:password|passwd|pwd|secret|token)\s{0,9}[=:]|[^\s:@]:[^\s@]{1,200}@",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADVICE = "store it in an Airflow connection and write only the connection's id here"


def names_secret(key: str) -> bool:
    """Whether a key of this name would hold an address or a password."""
    return _SECRET_KEY.search(key) is not None


def looks_secret(value: str) -> bool:
    """Whether a text is or contains a URL, a password parameter or the like."""
    return _SECRET_VALUE.search(value) is not None


def secrets(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """(path, what is wrong and what to do) of every password, URL and the like below a plain value."""
    key = path[-1] if path else ""
    if isinstance(key, str) and looks_secret(key):
        yield path, f"this key looks like an address or a password; {_ADVICE}"
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from secrets(item, (*path, name))
    elif isinstance(key, str) and names_secret(key) and not _is_about_a_column(path, value):
        yield path, f"addresses and secrets do not belong in this file; {_ADVICE}"
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from secrets(item, (*path, index))
    elif isinstance(value, str) and any(map(looks_secret, _said(path, value))):
        yield path, f"this value looks like an address or a password; {_ADVICE}"


def _said(path: tuple[str | int, ...], value: str) -> tuple[str, ...]:
    """The texts of a value: of a row filter its constants, since it may well compare a column `token` with one."""
    try:
        return parse_row_filter(value).texts if _is_row_filter(path) else (value,)
    except ValueError:
        return (value,)


def _is_row_filter(path: tuple[str | int, ...]) -> bool:
    return path[-1:] == ("where",) or path[-2:-1] == ("owners",)


def _is_about_a_column(path: tuple[str | int, ...], value: object) -> bool:
    """Whether the key is a column's name, which may well be `password`, and the value what is done about it."""
    if not isinstance(value, str):
        return False
    if path[-2:-1] == ("private",):
        return value in ("stored", "hashed", "dropped")
    return path[-4:-3] == ("mappings",) and path[-2] == "rename" and _COLUMN.fullmatch(value) is not None
