"""A refusal where there should be none is the test's own failure, in the words of the refusal."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from concord.messages.errors import ConcordError


@contextmanager
def goes_on(refusal: type[Exception] = ConcordError) -> Iterator[None]:
    """Fails with what the product said, whatever it was; or the database, of its own users' statements."""
    try:
        yield
    except refusal as error:
        pytest.fail(f"it does not go on: {type(error).__name__}: {error}")
