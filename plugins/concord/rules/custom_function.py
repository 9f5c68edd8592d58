"""A function of somebody else's that decides conflicts: found by its name, before the first conflict needs it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from concord.messages.errors import ResolverFailed
from concord.rules.kinds import KINDS
from concord.rules.merging import Custom
from concord.rules.policy import Policy

#: From a batch of conflicts to a batch of decisions, as Arrow; `spark_jobs.steps.custom` says what is in them.
Function = Callable[[Any], Any]


def function_of(entry_point: str) -> Function:
    """`package.module:function`, imported. Raises ResolverFailed."""
    try:
        found = resolve_name(entry_point)
    except Exception as error:
        raise ResolverFailed(
            f"custom({entry_point}) cannot be imported: {said(error)}. Install it where the Spark driver and its"
            " executors run; nothing of the table was written"
        ) from error
    if not callable(found):
        raise ResolverFailed(f"custom({entry_point}) is no function; nothing of the table was written")
    return found  # type: ignore[no-any-return]


def why_not_callable(policy: Policy) -> str | None:
    """Why a function of the policy cannot be asked; looked at before it is needed, since conflicts are rare."""
    functions = [Custom.of(argument) for name, argument in policy.named if KINDS[name].takes_function]
    try:
        for each in functions:
            function_of(each.entry_point)
    except ResolverFailed as error:
        return error.message
    return None


def said(error: BaseException, *, private: bool = False) -> str:
    """The kind of error, and the first line of what it says; where that may hold private values, where it arose."""
    if private:
        arose = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {arose.name}, line {arose.lineno}; what it says may be private"
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"
