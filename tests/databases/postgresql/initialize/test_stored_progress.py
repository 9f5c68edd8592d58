"""The stored state of an initialization may be anything: it is read as it was written, or refused with its table."""

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.databases.contract.initialization import Progressed
from concord.databases.postgresql.initialize import progress
from concord.jobs.initialization import How, RowError
from concord.messages.errors import ConcordError
from embedded.postgres import Server
from tests.conftest import MakeDatabase
from tests.given.fixtures import site_on

SITES = ("capetown", "london")
ERROR = RowError(site="capetown", table="public.book", key=("1",), reason="refused")
WRITTEN = Progressed(
    "public.book",
    How.LOAD,
    "london",
    None,
    None,
    source_position="5:7:5,6",
    target_position="5:5:",
    bound=("1",),
    phase="running",
    written={"capetown": 3},
    errors=(ERROR,),
)
FIELDS = [each.name for each in fields(Progressed) if each.name != "table"]
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["auto", "london"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


def row(**changed: object) -> list[object]:
    """As the database brings it."""
    stored = {each.name: getattr(WRITTEN, each.name) for each in fields(Progressed)}
    stored |= {"how": "load", "bound": ["1"], "errors": [ERROR.model_dump()]}
    return list((stored | changed).values())


def test_it_is_read_as_it_was_written() -> None:
    assert progress.progressed(row(), SITES) == WRITTEN


def read_or_refused(stored: dict[str, object]) -> Progressed | str:
    try:
        return progress.progressed(row(**stored), SITES)
    except ConcordError as error:
        return error.message


@given(st.dictionaries(st.sampled_from(FIELDS), ANYTHING, min_size=1, max_size=3), st.integers(1, 3))
def test_anything_else_is_read_or_refused_with_the_name_of_the_table(
    stored: dict[str, object], columns: int
) -> None:
    found = read_or_refused(stored)
    if isinstance(found, str):
        assert found.startswith("public.book: what capetown holds of its initialization")
        return
    assert isinstance(found.how, How)
    assert all(isinstance(text, str) for text in found.bound or ())
    assert all(isinstance(each, RowError) and each.name is not None for each in found.errors)
    progress.fits(found, columns)
    progress.summary(found, ())


@pytest.mark.parametrize(
    "changed",
    [
        {"how": "by magic"},
        {"named": "oslo"},
        {"stale": "oslo"},
        {"source_position": "x"},
        {"unsent_since": "1:1:'); DROP TABLE book; --"},
        {"bound": {"id": 1}},
        {"errors": [{"site": "capetown"}]},
        {"errors": [None]},
        {"written": [1]},
    ],
    ids=str,
)
def test_each_of_these_is_refused_at_a_real_site(
    server_with_logins: Server, database: MakeDatabase, changed: dict[str, object]
) -> None:
    site = site_on(server_with_logins, "capetown", database().name)
    site.run("CREATE SCHEMA concord", *progress.STATEMENTS)
    progress.begin(site.connection, "pair", "london", [WRITTEN])
    progress.place(site.connection, "pair", WRITTEN)
    assert list(progress.read(site.connection, "pair", SITES)) == ["public.book"]
    ((name, value),) = changed.items()
    text = value if isinstance(value, str) else json.dumps(value)
    site.connection.execute(f"UPDATE concord.initialization SET {name} = %s".encode(), [text])
    with pytest.raises(
        ConcordError, match=r"public\.book: what capetown holds of its initialization is not as"
    ):
        progress.read(site.connection, "pair", SITES)
    site.close()


def test_a_key_of_another_length_does_not_fit() -> None:
    assert progress.fits(WRITTEN, 1)
    assert not progress.fits(WRITTEN, 2)
    assert not progress.fits(replace(WRITTEN, bound=("1", "2")), 1)
