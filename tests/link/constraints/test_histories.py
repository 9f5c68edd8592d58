"""Random histories of parents and children with unique values, at two sites. Whatever happens, every constraint
holds after every link, and the sites agree. A row that is gone was deleted by a user or stands in the ledger."""

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from embedded.postgres import Server
from tests.given.site import Site
from tests.link.constraints.lived_pair import Life, live

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


def note_deletes(*sites: Site) -> None:
    """The users' deletes, and their cascades; silent while a link writes."""
    for site in sites:
        site.run(
            "CREATE TABLE deletes (name text, id int)",
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " INSERT INTO public.deletes VALUES (TG_TABLE_NAME, OLD.id); RETURN NULL; END $$",
            *(
                f"CREATE TRIGGER note AFTER DELETE ON {name} FOR EACH ROW EXECUTE FUNCTION note()"
                for name in NAMES
            ),
        )


@pytest.fixture(scope="module", params=["forward"])
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    yield from live(request, server_with_logins, "histories", TABLES, note_deletes)


def happen(life: Life, taken: list[tuple[bool, str, int, int, int]], start: int) -> None:
    """An edit that a site's own constraints refuse does not happen."""
    for at_london, statement, *numbers in taken:
        site = life.sites.sites[0 if at_london else 1]
        filled = dict(zip("klm", (start + number for number in numbers), strict=True))
        try:
            site.run(statement.format(**filled))
        except psycopg.Error:
            site.connection.rollback()


def gone_without_a_trace(life: Life) -> set[tuple[str, int]]:
    """Rows that are gone, although no user deleted them, and the ledger does not name them."""
    gone = {
        (name, key)
        for site in life.sites.sites
        for name in NAMES
        for (key,) in site.rows(f'SELECT id FROM concord."public.{name}" WHERE deleted')
    }
    deleted = {
        (name, key) for site in life.sites.sites for name, key in site.rows("SELECT name, id FROM deletes")
    }
    named = {(e["table_name"].removeprefix("public."), int(e["key"][0])) for e in life.sites.conflicts()}
    return gone - deleted - named


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
    assert gone_without_a_trace(life) == set()
    ids = [entry["id"] for entry in life.sites.conflicts()]
    assert len(ids) == len(set(ids))
