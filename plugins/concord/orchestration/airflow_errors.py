"""Which of our errors Airflow may retry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from concord.errors import ConcordError


@contextmanager
def in_airflow_terms() -> Iterator[None]:
    """Transient errors fail the try, permanent ones the task; both with their one clear line."""
    try:
        yield
    except ConcordError as error:
        kind = AirflowException if error.transient else AirflowFailException
        raise kind(f"{error.message} [{error.code}]") from None
