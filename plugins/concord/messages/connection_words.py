"""The words of PostgreSQL's client library about a connection, as one sentence: `connection refused
(127.0.0.1:6002)`."""

from __future__ import annotations

import re

_FAILED = re.compile(
    r'connection to server (?:at "(?P<host>[^"]+)"(?: \([^)]*\))?, port (?P<port>\d+)|on socket "(?P<socket>[^"]+)")'
    r" failed: (?P<why>[^\n]+)"
)
_LEVEL = re.compile(r"^(?:FATAL|ERROR|PANIC):\s+")


def one_sentence(said: str) -> str:
    """Without the library's advice, its tabs and its second lines; of several hosts that failed, the first."""
    found = _FAILED.search(said)
    if found is None:
        return _lowered(said.strip().partition("\n")[0])
    why = _lowered(found["why"])
    return f"{why} ({found['socket'] or _address(found['host'], found['port'])})"


def _address(host: str, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _lowered(why: str) -> str:
    """`Connection refused` begins no sentence here; `SSL error` is no word to be lowered."""
    text = " ".join(_LEVEL.sub("", why).split()).rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
