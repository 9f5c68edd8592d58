"""Which tests `make test` leaves out, as a rule that a contributor can repeat.

- Tests that are marked `long`.
- All values but one of a parameter that doubles a test. The commit chooses the value: the next one may choose another.
  A value that is marked `long` is never chosen.

`make test-all` leaves out nothing, and neither does pytest when it is started by hand.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest

#: Parameters with which a test shows the same promise in two ways: how changes are captured, where conflicts are
#: decided, the direction of the link, the database that holds the repository.
DOUBLED = ("capture", "judged", "direction", "new_url")

LONG = "long"


def left_out(items: Iterable[pytest.Item], commit: str) -> Iterator[pytest.Item]:
    """The tests of `items` that `make test` does not run at this commit."""
    items = list(items)
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for item in items:
        if not item.get_closest_marker(LONG):
            for parameter, value in _doubled(item):
                values[_function(item), parameter].add(value)
    for item in items:
        function = _function(item)
        if item.get_closest_marker(LONG) or any(
            value != chosen(values[function, parameter], f"{commit} {function} {parameter}")
            for parameter, value in _doubled(item)
        ):
            yield item


def chosen(values: Iterable[str], seed: str) -> str:
    """One of the values: always the same for a seed."""
    ordered = sorted(values)
    return ordered[int(hashlib.sha256(seed.encode()).hexdigest(), 16) % len(ordered)]


def _doubled(item: pytest.Item) -> list[tuple[str, str]]:
    parameters = (
        item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    )
    return [(name, str(parameters[name])) for name in DOUBLED if name in parameters]


def _function(item: pytest.Item) -> str:
    """The test's name without its parameters."""
    return item.nodeid.partition("[")[0]
