"""Types of extensions that are taken: the text of a value, read again, is that value to the last bit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.session import PIN
from concord.databases.postgresql.facts.types import AS_TEXT, UNFIT_FOR_KEY
from embedded.postgres import Server
from embedded.programs import versions

#: Extension → its types.
ISN = ("ean13", "isbn", "isbn13", "ismn", "ismn13", "issn13", "upc")
EXTENSIONS = {"vector": ("vector", "halfvec", "sparsevec"), "cube": ("cube",), "isn": ISN}

Exact = Callable[[str], None]


@contextmanager
def _checked(folder: Path, version: int, *extensions: str) -> Iterator[Exact]:
    server = Server.create(folder / "server", version=version)
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        for extension in extensions:
            superuser.execute(f"CREATE EXTENSION {extension}".encode())
        superuser.execute(PIN.encode())

        def exact(value: str) -> None:
            shown = f"SELECT format('%s', {value}), format_type(pg_typeof({value}), NULL)"
            ((text, name),) = superuser.execute(shown.encode()).fetchall()
            again = f"{literal(text)}::{name}"
            same = f"SELECT record_image_eq(ROW({value}), ROW({again})), format('%s', {again})"
            assert superuser.execute(same.encode()).fetchall() == [(True, text)]

        yield exact
    server.remove()


@pytest.fixture(scope="module", params=[16, 18])
def with_vector(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exact]:
    with _checked(tmp_path_factory.mktemp("types"), request.param, "vector") as exact:
        yield exact


@pytest.fixture(scope="module")
def with_contributed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exact]:
    """The wheel of the other versions has no such extensions."""
    if 17 not in versions():
        pytest.skip("the wheel of PostgreSQL 17, whose extensions these are, is for another machine")
    with _checked(tmp_path_factory.mktemp("types"), 17, "cube", "isn") as exact:
        yield exact


def test_an_issn_does_not_tell_its_variant(with_contributed: Exact) -> None:
    assert "issn" not in AS_TEXT
    with pytest.raises(AssertionError):
        with_contributed("'977000000001?'::public.issn")


def test_they_are_taken_and_identify_no_row() -> None:
    names = {name for kinds in EXTENSIONS.values() for name in kinds} | {"geometry", "geography"}
    assert names <= AS_TEXT & UNFIT_FOR_KEY


DOUBLES = st.floats(allow_nan=False)
SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)
HALVES = st.floats(width=16, allow_nan=False, allow_infinity=False)


@given(corner=st.lists(st.tuples(DOUBLES, DOUBLES), min_size=1, max_size=5))
def test_a_cube(with_contributed: Exact, corner: list[tuple[float, float]]) -> None:
    one, other = (",".join(map(repr, side)) for side in zip(*corner, strict=True))
    with_contributed(f"'({one}),({other})'::public.cube")


@given(values=st.lists(SINGLES, min_size=1, max_size=8))
def test_a_vector(with_vector: Exact, values: list[float]) -> None:
    with_vector(f"'{values}'::public.vector")
    held = ",".join(f"{place}:{value!r}" for place, value in enumerate(values, 1) if value)
    with_vector(f"'{{{held}}}/{len(values)}'::public.sparsevec")


@given(values=st.lists(HALVES, min_size=1, max_size=8))
def test_a_half_vector(with_vector: Exact, values: list[float]) -> None:
    with_vector(f"'{values}'::public.halfvec")


@pytest.mark.parametrize("kind", ISN)
@given(number=st.integers(0, 99999), marked=st.booleans())
def test_a_number_of_isn(with_contributed: Exact, kind: str, number: int, marked: bool) -> None:
    prefix = {"isbn": "9780000", "isbn13": "9780000", "ismn": "9790000", "ismn13": "9790000"}
    start = prefix.get(
        kind, "9770000" if kind.startswith("issn") else "0000000" if kind == "upc" else "5000000"
    )
    with_contributed(f"'{start}{number:05d}{'?!' if marked else '?'}'::public.{kind}")
