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
def _checked(folder: Path, version: int, programs: Path | None, *extensions: str) -> Iterator[Exact]:
    server = Server.create(folder / "server", version=version, binaries=programs)
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


@pytest.fixture(scope="module", params=versions())
def of_the_wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exact]:
    with _checked(tmp_path_factory.mktemp("types"), request.param, None, "vector") as exact:
        yield exact


@pytest.fixture(scope="module")
def of_debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exact]:
    """The wheel has no other extensions."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        pytest.skip("no PostgreSQL of Debian's is installed, whose extensions these are")
    programs = found[-1].parent
    version = int(programs.parent.name)
    with _checked(tmp_path_factory.mktemp("types"), version, programs, "cube", "isn") as exact:
        yield exact


def test_an_issn_does_not_tell_its_variant(of_debian: Exact) -> None:
    assert "issn" not in AS_TEXT
    with pytest.raises(AssertionError):
        of_debian("'977000000001?'::public.issn")


def test_they_are_taken_and_identify_no_row() -> None:
    names = {name for kinds in EXTENSIONS.values() for name in kinds} | {"geometry", "geography"}
    assert names <= AS_TEXT & UNFIT_FOR_KEY


DOUBLES = st.floats(allow_nan=False)
SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)
HALVES = st.floats(width=16, allow_nan=False, allow_infinity=False)


@given(corner=st.lists(st.tuples(DOUBLES, DOUBLES), min_size=1, max_size=5))
def test_a_cube(of_debian: Exact, corner: list[tuple[float, float]]) -> None:
    one, other = (",".join(map(repr, side)) for side in zip(*corner, strict=True))
    of_debian(f"'({one}),({other})'::public.cube")


@given(values=st.lists(SINGLES, min_size=1, max_size=8))
def test_a_vector(of_the_wheel: Exact, values: list[float]) -> None:
    of_the_wheel(f"'{values}'::public.vector")
    held = ",".join(f"{place}:{value!r}" for place, value in enumerate(values, 1) if value)
    of_the_wheel(f"'{{{held}}}/{len(values)}'::public.sparsevec")


@given(values=st.lists(HALVES, min_size=1, max_size=8))
def test_a_half_vector(of_the_wheel: Exact, values: list[float]) -> None:
    of_the_wheel(f"'{values}'::public.halfvec")


@pytest.mark.parametrize("kind", ISN)
@given(number=st.integers(0, 99999), marked=st.booleans())
def test_a_number_of_isn(of_debian: Exact, kind: str, number: int, marked: bool) -> None:
    prefix = {"isbn": "9780000", "isbn13": "9780000", "ismn": "9790000", "ismn13": "9790000"}
    start = prefix.get(
        kind, "9770000" if kind.startswith("issn") else "0000000" if kind == "upc" else "5000000"
    )
    of_debian(f"'{start}{number:05d}{'?!' if marked else '?'}'::public.{kind}")
