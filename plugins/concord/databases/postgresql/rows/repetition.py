"""Try a transaction again until it has committed, for as long as only others were in its way (rule 3, F56)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import psycopg

from concord.databases.postgresql.facts import lock_holders
from concord.databases.postgresql.facts.connection import Connection, ConnectionEnded, in_our_words
from concord.databases.postgresql.facts.refusal import told
from concord.databases.postgresql.facts.table_errors import TRIES_AGAIN
from concord.databases.postgresql.rows import link_state
from concord.messages.errors import ConcordError, ConstraintViolated, NotInitialized, WriteContended

#: How long the whole transaction is repeated when applications get in its way.
PATIENCE = 120.0

#: Two rows with one value: a lost race, values that move between rows, or a collision that `uniqueness` mends.
COLLISIONS = (psycopg.errors.UniqueViolation, psycopg.errors.ExclusionViolation)

#: How many of them before one is taken for what it says: the second may be a lost race again (rule 3).
RACES = 3


@dataclass(frozen=True, slots=True)
class Commit:
    """Where a transaction is tried, and the session by which its commit is known."""

    connect: Callable[[], Connection]  #: the connection that is at hand; another one where that has ended
    link: str
    session: str | None  #: None: it leaves no trace, counts as lost, and its repetition finds it done
    site: str
    private: bool = False  #: errors may hold what people must not read
    tables: Mapping[str, int] = field(default_factory=dict)  #: those that are written: their oids, by name

    def happened(self) -> bool:
        """Did the transaction commit although the answer was lost? The link's state knows (F56)."""
        if self.session is None:
            return False
        try:
            history = link_state.read(self.connect(), self.link, self.site).history
        except NotInitialized:
            return False
        return any(known.id == self.session for known in history)


class Attempt(Protocol):
    """One try of a transaction, told how many unique violations earlier tries met."""

    def __call__(self, connection: Connection, *, violations: int) -> None: ...


def repeat(commit: Commit, attempt: Attempt) -> None:
    """Try the whole transaction again on a deadlock or a lost race (rule 3), for as long as PATIENCE lasts since
    the first try. That try may have been long, and in vain because it locked little.

    A commit whose outcome is unknown is looked up in the link's state (F56). A backfill leaves nothing there and is
    repeated, which finds its rows written. Raises WriteContended, ConstraintViolated, LeaseLost, SiteUnavailable.
    """
    began, violations, tries, ended = time.monotonic(), 0, 0, False
    while True:
        tries += 1
        connection = commit.connect()
        try:
            attempt(connection, violations=violations)
        except (psycopg.Error, WriteContended) as error:
            if (
                isinstance(error, ConnectionEnded) and not ended
            ):  # before anything was done: another one does it
                ended, tries = True, tries - 1
                continue
            if connection.broken and commit.happened():
                return
            violations += isinstance(error, COLLISIONS)
            _refuse_what_will_not_pass(error, violations, commit)
            if tries == 1:
                began = time.monotonic()
            elif time.monotonic() - began > PATIENCE:
                raise _in_vain(error, commit) from error
        else:
            return
        time.sleep(random.uniform(0, min(2.0, 0.05 * 2**tries)))  # noqa: S311 - jitter needs no cryptography


def _in_vain(error: psycopg.Error | WriteContended, commit: Commit) -> ConcordError:
    """The error, and who is in the way: of the table that it names, or of any."""
    worded = _worded(error, commit)
    tables = commit.tables
    if (table := worded.facts.get("table")) in tables:
        tables = {str(table): tables[str(table)]}
    held = ""
    with suppress(ConcordError):
        held = lock_holders.described(commit.connect(), tables.values())
    if not held:
        return worded
    message = worded.message.removesuffix(TRIES_AGAIN)
    return type(worded)(f"{message}; {held}. End that transaction", **worded.facts)


def _worded(error: psycopg.Error | WriteContended, commit: Commit) -> ConcordError:
    if isinstance(error, psycopg.Error):
        return in_our_words(error, commit.site, private=commit.private)
    return error


def _refuse_what_will_not_pass(
    error: psycopg.Error | WriteContended, violations: int, commit: Commit
) -> None:
    """Raise what no repetition mends: a constraint of the target, a missing right, a dead database."""
    site, private = commit.site, commit.private
    if isinstance(error, COLLISIONS):
        if violations < RACES:
            return
        raise ConstraintViolated(
            f"{site}: {told(error, private=private)}. Two sites used one value; change one of the rows, at either"
            " site. Nothing was written"
        ) from error
    if isinstance(error, psycopg.errors.IntegrityError | psycopg.errors.DataError):
        raise ConstraintViolated(f"{site}: {told(error, private=private)}; nothing was written") from error
    if not isinstance(_worded(error, commit), WriteContended):
        raise _worded(error, commit) from error
