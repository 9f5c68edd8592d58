"""Random histories of parents whose values move and of their children, where the log reports the edits. Users also edit
while a link writes. Whatever happens, every foreign key holds after every link, and the sites agree."""

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from concord.jobs.site import Capture
from embedded.postgres import Server
from tests.given.at_step import At
from tests.given.site import Site
from tests.link.constraints.lived_pair import Life, live, note_deletes

#: The last one's key is what follows.
NAMES = ("parent", "child", "later", "part", "friend")
TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY, u text UNIQUE, note text)",
    "CREATE TABLE child (id int PRIMARY KEY, u text NOT NULL REFERENCES parent (u) ON UPDATE CASCADE, note text)",
    "CREATE TABLE later (id int PRIMARY KEY, u text REFERENCES parent (u) DEFERRABLE, note text)",
    "CREATE TABLE part (id int PRIMARY KEY, u text REFERENCES parent (u) ON UPDATE CASCADE ON DELETE CASCADE,"
    " note text)",
    "CREATE TABLE friend (u text REFERENCES parent (u) ON UPDATE CASCADE, id int, note text, PRIMARY KEY (u, id))",
)

#: A user's edits: k and n are numbers of rows, v and w values that only parent k has.
STEPS = (
    "UPDATE parent SET u = '{v}' WHERE id = {k}",
    "BEGIN; SET CONSTRAINTS ALL DEFERRED; UPDATE later SET u = '{w}' WHERE u = '{v}';"
    " UPDATE parent SET u = '{w}' WHERE u = '{v}'; COMMIT",
    "UPDATE parent SET note = '{w}' WHERE id = {k}",
    "INSERT INTO parent VALUES ({k}, '{v}')",
    "DELETE FROM parent WHERE id = {k}",
    *(f"INSERT INTO {name} (id, u) VALUES ({{n}}, '{{v}}')" for name in NAMES[1:]),
    "UPDATE child SET u = '{v}' WHERE id = {n}",
    "UPDATE later SET u = NULL WHERE id = {n}",
    *(f"UPDATE {name} SET note = '{{w}}' WHERE id = {{n}}" for name in NAMES[1:]),
    *(f"DELETE FROM {name} WHERE id = {{n}}" for name in ("child", "part")),
)
steps = st.tuples(
    st.booleans(),
    st.sampled_from(STEPS),
    *(st.integers(0, 2) for _ in "kn"),
    *(st.sampled_from("abc") for _ in "vw"),
)
Step = tuple[bool, str, int, int, str, str]
#: Before the first link, between the two, and while the next ones write.
histories = st.tuples(*(st.lists(steps, max_size=size) for size in (8, 8, 3)))
moments = st.sampled_from(["lock", "judge", "base", "shadow", "constraints"])

_ranges = count(1)


@pytest.fixture(scope="module", params=[("forward", Capture.LOG)], ids=["log"])
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    yield from live(request, server_with_logins, "logged_moves", TABLES, with_patience)


def with_patience(*sites: Site) -> None:
    """An edit waits for no link: it is made in the thread of the link that has locked the row."""
    note_deletes(NAMES[:-1], *sites)
    for site in sites:
        site.run("SET lock_timeout = '20ms'")


def happen(life: Life, starts: list[int], lived: list[list[Step]]) -> None:
    for start, taken in zip(starts, lived, strict=True):
        for step in taken:
            edit(life, start, step)


def edit(life: Life, start: int, step: Step) -> None:
    """An edit that the site's own constraints refuse does not happen."""
    at_london, statement, k, n, v, w = step
    site, values = life.sites.sites[at_london], {"v": f"{start + k} {v}", "w": f"{start + k} {w}"}
    try:
        site.run(statement.format(k=start + k, n=start + n, **values))
    except psycopg.Error:
        site.run("ROLLBACK")


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(histories, min_size=8, max_size=15),
    st.sampled_from([("forward", "reverse"), ("reverse", "forward")]),
    st.lists(moments, min_size=4, max_size=4),
)
def test_whatever_moves_while_links_write_every_foreign_key_holds_and_the_sites_agree(
    life: Life,
    lived: list[tuple[list[Step], list[Step], list[Step]]],
    order: tuple[str, str],
    meanwhile: list[str],
) -> None:
    """All histories of an example in one run, each in numbers and values of its own."""
    starts = [10 * next(_ranges) for _ in lived]
    for turn, direction in enumerate(order):
        happen(life, starts, [history[turn] for history in lived])
        life.run(direction)
    for direction, moment in zip(order * 2, meanwhile, strict=True):
        life.run(direction, At(moment, lambda: happen(life, starts, [history[2] for history in lived])))
    for direction in order * 2:
        life.run(direction)
    assert life.unsound == []
    query = "SELECT table_name, key, reason FROM concord.waiting"
    assert [site.rows(query) for site in life.sites.sites] == [[], []]
    assert life.sites.equal
    assert life.gone_without_a_trace(NAMES[:-1]) == set()
    assert [life.run(direction) for direction in order] == [0, 0]
