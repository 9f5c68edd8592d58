"""A link that must go on says so: what the product refuses where it should not is then the test's own failure."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from concord.messages.errors import ConcordError


@contextmanager
def goes_on() -> Iterator[None]:
    """Fails with what the product said, whatever it was."""
    try:
        yield
    except ConcordError as error:
        pytest.fail(f"it does not go on: {type(error).__name__}: {error}")
