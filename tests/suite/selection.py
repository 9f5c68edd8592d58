"""Which tests `make test` leaves out, as a rule that a contributor can repeat.

- Tests that are marked `long`.
- Of tests that differ in nothing but a parameter that doubles them, all but one. The commit chooses the value: the next
  one may choose another. A value that is marked `long` is never chosen.

`make test-all` leaves out nothing, and neither does pytest when it is started by hand.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pytest

#: Parameters with which a test shows the same promise in two ways: how changes are captured, where conflicts are
#: decided, the direction of the link, the database that holds the repository.
DOUBLED = ("capture", "judged", "direction", "new_url")

LONG = "long"


def left_out(items: Iterable[pytest.Item], commit: str) -> Iterator[pytest.Item]:
    """The tests of `items` that `make test` does not run at this commit."""
    items = list(items)
    values: dict[_Alike, set[str]] = defaultdict(set)
    for item in items:
        if not item.get_closest_marker(LONG):
            for alike, value in _doubled(item):
                values[alike].add(value)
    for item in items:
        if item.get_closest_marker(LONG) or any(
            value != chosen(values[alike], f"{commit} {alike.function} {alike.parameter}")
            for alike, value in _doubled(item)
        ):
            yield item


def chosen(values: Iterable[str], seed: str) -> str:
    """One of the values: always the same for a seed."""
    ordered = sorted(values)
    return ordered[int(hashlib.sha256(seed.encode()).hexdigest(), 16) % len(ordered)]


class _Alike(NamedTuple):
    """Tests that differ in one parameter alone."""

    function: str
    parameter: str
    others: str  #: the values of all other parameters


def _doubled(item: pytest.Item) -> Iterator[tuple[_Alike, str]]:
    """For each parameter that doubles the test: the tests it is alike to, and its own value."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return
    parameters = item.callspec.params
    function = item.nodeid.partition("[")[0]
    for name in DOUBLED:
        if name in parameters:
            others = repr({other: value for other, value in parameters.items() if other != name})
            yield _Alike(function, name, others), str(parameters[name])
