"""Spark's SQL as text, for rules of many parts: each part of a Column is a question to Java; thousands take seconds."""

from __future__ import annotations


def text(value: str) -> str:
    """A literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def case(*cases: tuple[str, str], otherwise: str = "NULL") -> str:
    """The first result whose condition holds; `otherwise` alone where there is no case."""
    if not cases:
        return otherwise
    when = " ".join(f"WHEN {condition} THEN {result}" for condition, result in cases)
    return f"CASE {when} ELSE {otherwise} END"
