"""Which of our errors Airflow tries again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from concord.messages.errors import ConcordError, RepositoryUnavailable, SiteUnavailable
from concord.orchestration.surroundings import waiting_person

#: A person who waits at a terminal sooner mends these than three tries have failed.
_OF_A_CONNECTION = (SiteUnavailable, RepositoryUnavailable)


@contextmanager
def in_airflow_terms() -> Iterator[None]:
    """Transient errors fail the try, permanent ones the task; both with their one clear line."""
    try:
        yield
    except ConcordError as error:
        kind = AirflowException if may_be_tried_again(error) else AirflowFailException
        raise kind(f"{error.message} [{error.code}]") from None


def may_be_tried_again(error: ConcordError) -> bool:
    """Transient errors, but not of a connection while a person waits."""
    return error.transient and not (waiting_person.does_wait() and isinstance(error, _OF_A_CONNECTION))
