"""Random histories of parents and children with unique values, at two sites. Whatever happens, every constraint
holds after every link, and the sites agree. A row that is gone was deleted by a user or stands in the ledger."""

from collections.abc import Iterator
from functools import partial
from itertools import count

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from embedded.postgres import Server
from tests.link.constraints.lived_pair import Life, live, note_deletes

TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY, soft int UNIQUE, hard int NOT NULL UNIQUE)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent, twin int UNIQUE)",
    "CREATE TABLE part (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE)",
    "CREATE TABLE by_value (id int PRIMARY KEY, soft int REFERENCES parent (soft) ON DELETE SET NULL)",
)

#: A user's edits: k, l and m are one of three numbers, in the range of the history.
STEPS = (
    "INSERT INTO parent VALUES ({k}, {l}, {m})",
    "UPDATE parent SET soft = {l} WHERE id = {k}",
    "UPDATE parent SET hard = {m} WHERE id = {k}",
    "DELETE FROM parent WHERE id = {k}",
    "INSERT INTO child VALUES ({k}, {l}, {m})",
    "UPDATE child SET parent = {l}, twin = {m} WHERE id = {k}",
    "DELETE FROM child WHERE id = {k}",
    "INSERT INTO part VALUES ({k}, {l})",
    "INSERT INTO by_value VALUES ({k}, {l})",
    "BEGIN; DELETE FROM child WHERE parent = {k}; DELETE FROM parent WHERE id = {k}; COMMIT",
)
numbers = st.integers(0, 2)
steps = st.tuples(st.booleans(), st.sampled_from(STEPS), numbers, numbers, numbers)
histories = st.lists(
    st.tuples(st.lists(steps, max_size=6), st.lists(steps, max_size=6)), min_size=15, max_size=25
)

_ranges = count(1)


NAMES = ("parent", "child", "part", "by_value")


@pytest.fixture(scope="module", params=["forward"])
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    yield from live(request, server_with_logins, "histories", TABLES, partial(note_deletes, NAMES))


def happen(life: Life, taken: list[tuple[bool, str, int, int, int]], start: int) -> None:
    """An edit that a site's own constraints refuse does not happen."""
    for at_london, statement, *numbers in taken:
        site = life.sites.sites[0 if at_london else 1]
        filled = dict(zip("klm", (start + number for number in numbers), strict=True))
        try:
            site.run(statement.format(**filled))
        except psycopg.Error:
            site.connection.rollback()


@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(histories, st.sampled_from([("forward", "reverse"), ("reverse", "forward")]))
def test_every_history_ends_with_equal_sites_and_every_constraint_true(
    life: Life,
    lived: list[tuple[list[tuple[bool, str, int, int, int]], list[tuple[bool, str, int, int, int]]]],
    order: tuple[str, str],
) -> None:
    """All histories of an example in one run, each in numbers of its own: before the first link, and between two."""
    starts = [10 * next(_ranges) for _ in lived]
    for start, (before, _) in zip(starts, lived, strict=True):
        happen(life, before, start)
    life.run(order[0])
    for start, (_, between) in zip(starts, lived, strict=True):
        happen(life, between, start)
    for direction in order * 2:
        life.run(direction)
    assert life.sites.equal
    assert life.unsound == []
    assert [life.run(direction) for direction in order] == [0, 0]
    assert life.gone_without_a_trace(NAMES) == set()
    ids = [entry["id"] for entry in life.sites.conflicts()]
    assert len(ids) == len(set(ids))
