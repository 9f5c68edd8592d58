"""A hook's function: found by its name before rows are written, asked over batches of them (S3-13).

`spark_jobs.steps.hook` says what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pkgutil import resolve_name
from typing import Any, NamedTuple

from concord.messages.errors import HookFailed
from concord.rules.custom_function import said
from concord.rules.hook import Hook

#: Rows that a hook is shown at once.
BATCH = 2_000

#: A row by its columns, in the database's own exact texts; None: no row.
Texts = Mapping[str, str | None]


class Verdict(StrEnum):
    """A hook's decision on a row."""

    APPLY = "apply"  #: it is written as it is
    CHANGE = "change"  #: another content is written under its key
    REFUSE = "refuse"  #: it is not written, and waits


class AboutToBeWritten(NamedTuple):
    """One row as a hook is shown it."""

    operation: str  #: insert, update or delete, as the site sees it
    incoming: Texts | None  #: None: it goes
    present: Texts | None  #: None: there is none yet
    previous: Texts | None  #: the row that both come from, or was there before the change; None: not known
    origin: str | None = None  #: of its version; None where rows have none
    changed_at: int | None = None
    changeable: bool = True  #: else another hook has changed it, and what it is stays


class Word(NamedTuple):
    """A hook's word on one row."""

    verdict: Verdict
    row: Texts | None  #: of CHANGE, the new one
    reason: str  #: of REFUSE, for people
    added: Mapping[str, Sequence[Texts]]  #: rows for other tables, by their names


@dataclass(frozen=True, slots=True)
class Hooked:
    """One table at one site, and its hook."""

    hook: Hook
    site: str
    table: str
    names: tuple[str, ...]
    spark_types: tuple[str, ...]  #: how each column travels
    key: tuple[str, ...]
    private: bool = False  #: no message repeats what the hook says
    may_change: bool = True

    @property
    def told(self) -> str:
        """For people."""
        return named(self.hook, self.site, self.table)


#: Asks a hook about some rows; its words in their order. Raises HookFailed.
AsksHook = Callable[[Hooked, Sequence[AboutToBeWritten]], Sequence[Word]]


def named(hook: Hook, site: str, table: str) -> str:
    """For people."""
    return f"{site}: {table}: the hook {hook.call}"


def function_of(call: str, told: str) -> Callable[[Any], Any]:
    """The function, imported. Raises HookFailed, with what people call it."""
    try:
        found = resolve_name(call)
    except Exception as error:
        raise HookFailed(
            f"{told} cannot be imported: {said(error)}. Install it where the task of the link runs; nothing of the"
            " table was written"
        ) from error
    if not callable(found):
        raise HookFailed(f"{told} is no function; nothing of the table was written")
    return found  # type: ignore[no-any-return]


def why_unknown(hook: Hook | None, site: str, table: str) -> str | None:
    """Why the hook cannot be asked; looked at before any row is on its way."""
    try:
        if hook is not None:
            function_of(hook.call, named(hook, site, table))
    except HookFailed as error:
        return error.message
    return None
