"""A failure in a task is told in our words, in whichever process it ran: Spark's, or the driver's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from concord.messages import errors
from concord.messages.errors import (
    ConcordError,
    LinkFailed,
    OtherCode,
    PrivilegeMissing,
    SiteUnavailable,
    SparkUnavailable,
)

#: The sentence for a person whose driver and workers do not run the same Concord.
OTHER_CODE = (
    "Spark's workers run another version of Concord than Airflow: restart the Connect server, or install the same"
    " version where its tasks run"
)

#: Stands before the name of the table in what a task says of an error.
STAGING = "while staging "

_DATABASE_SAID = re.compile(r"(?:ERROR|FATAL|PANIC):  (.+)")
#: Which of several tables a task was busy with.
_WHERE = re.compile(f"^{STAGING}(.+)$", re.MULTILINE)
#: A task's words that are ours already. An executor's error comes as text alone.
_OURS = re.compile(rf"^{re.escape(errors.__name__)}\.(\w+): (.+)$", re.MULTILINE)
#: Spark Connect's words about a server that has ended or begun anew while a job ran, or has given the job up.
_NO_SPARK = re.compile(
    r"UNAVAILABLE|NO_ACTIVE_SESSION|SESSION_CLOSED|SESSION_CHANGED|RETRIES_EXCEEDED|OPERATION_ABANDONED"
    r"|RESPONSE_ALREADY_RECEIVED|OPERATION_CANCELED"
)
#: A worker's words when it was given a function of ours which its own Concord does not have.
_NOT_OURS = re.compile(r"No module named '(?:concord|spark_jobs)|on <module '(?:concord|spark_jobs)")
#: ADBC's words for a connection that is not to be had or has broken; and a snapshot ends with the connection that
#: holds it.
_AWAY = re.compile(r"OperationalError: IO:|query 'SET TRANSACTION SNAPSHOT")


class TaskFailed(Exception):
    """A task that the driver ran itself: what Python said, as Spark would have brought it."""


@contextmanager
def worded(table: str) -> Iterator[None]:
    """A task's failure, in our words: those of the database, else the last line that names an error.

    `table` is whose changes are carried; where a task knows which of several it was, that one is named. The error's
    fact `table` is the same.
    """
    try:
        yield
    except Exception as error:
        if not _is_of_a_task(error):
            raise
        if found := _WHERE.search(str(error)):
            table = found[1]
        if ours := _in_our_words(error):
            kind, message = ours
            about = message if message.startswith(f"{table}: ") else f"{table}: {message}"
            raise kind(f"{about.rstrip('.')}. Nothing was written", table=table) from error
        said = _what_was_said(str(error))
        if _NOT_OURS.search(str(error)):
            raise OtherCode(f"{OTHER_CODE} ({said}). Nothing was written") from error
        if _NO_SPARK.search(str(error)):
            raise SparkUnavailable(
                f"{table}: Spark has ended while it worked: {said}. Nothing was written; the next run tries again"
            ) from error
        if "permission denied" in said:
            raise PrivilegeMissing(
                f"{table}: {said}. Run `provision` to grant what the role needs; nothing was written"
            ) from error
        if _AWAY.search(str(error)):
            raise SiteUnavailable(
                f"{table}: a site's database does not answer the link's tasks: {said}. Nothing was written; the next"
                " run tries again"
            ) from error
        raise LinkFailed(
            f"{table}: its rows could not be moved: {said}. Nothing was written", table=table
        ) from error


def _in_our_words(error: Exception) -> tuple[type[ConcordError], str] | None:
    """Class and message of what a task has said of itself in our words."""
    if isinstance(error.__cause__, ConcordError):
        return type(error.__cause__), error.__cause__.message
    found = _OURS.search(str(error))
    return (getattr(errors, found[1]), found[2]) if found else None


def _is_of_a_task(error: Exception) -> bool:
    """Does it bring the words of a task? Spark's errors are known by their names: this room imports nothing of it."""
    by_spark = {"pyspark.errors.exceptions.base.PySparkException", "py4j.protocol.Py4JJavaError"}
    kinds = (f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__)
    return isinstance(error, TaskFailed) or not by_spark.isdisjoint(kinds)


def _what_was_said(trace: str) -> str:
    """One line out of an executor's trace; never the query, which ADBC repeats whole, nor a line of a stack."""
    if found := _DATABASE_SAID.search(trace):
        return found[1].strip()
    lines = [line.strip() for line in trace.splitlines() if line.strip() and "Query was:" not in line]
    told = [line for line in lines if not line.startswith(("at ", STAGING))]
    last_error = next((line for line in reversed(told) if "Error" in line), None)
    return (
        last_error
        or next((line for line in told if "Exception: " in line), lines[0]).split("Exception: ")[-1]
    )
