"""Whatever a sequence counts and whatever rows came, it goes on after them: forwards only, in its own steps (S2-18)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from concord.databases.postgresql.facts import sequences
from concord.databases.postgresql.write import identity_ranges
from concord.tables.replication_set import TableName
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on
from tests.given.site import Site

TABLE = TableName(schema_name="public", name="numbered")


@dataclass(frozen=True)
class Counted:
    """A sequence, how many numbers were drawn from it, and the rows of the table that it feeds."""

    step: int
    around: int  #: all numbers are near this one: those of a smallint may end before the sequence does
    least: int
    width: int
    drawn: int
    rows: frozenset[int]
    type: str
    cycle: str

    @property
    def numbers(self) -> range:
        """Of the sequence."""
        first = self.around + self.least
        return range(first, first + self.width + 1)

    @property
    def held(self) -> range:
        """The numbers that the column holds, as far as they matter here."""
        return range(-(2**15), 2**15) if self.type == "smallint" else range(-(2**16), 2**16)

    @property
    def met(self) -> list[int]:
        return sorted(row for row in (self.around + each for each in self.rows) if row in self.held)

    def make(self, site: Site) -> None:
        limits = f"INCREMENT {self.step} MINVALUE {self.numbers[0]} MAXVALUE {self.numbers[-1]} {self.cycle}"
        drawn = min(self.drawn, self.width // abs(self.step))
        site.run(
            f"CREATE SEQUENCE counted {limits}",
            f"CREATE TABLE numbered (id {self.type} PRIMARY KEY DEFAULT nextval('counted'))",
            f"SELECT nextval('counted') FROM generate_series(1, {drawn})",
            f"INSERT INTO numbered SELECT unnest(ARRAY[{','.join(map(str, self.met))}]::int[])",
        )


COUNTED = st.builds(
    Counted,
    step=st.integers(-3, 3).filter(bool),
    around=st.sampled_from([0, 0, 2**15 - 20, -(2**15) + 20]),
    least=st.integers(-30, 5),
    width=st.integers(6, 60),
    drawn=st.integers(0, 4),
    rows=st.frozensets(st.integers(-40, 70)),
    type=st.sampled_from(["smallint", "int", "bigint", "numeric"]),
    cycle=st.sampled_from(["CYCLE", "NO CYCLE"]),
)

#: A row has the last number of its column's type, and the sequence goes on beyond it.
LAST_UPWARDS = Counted(1, 2**15 - 20, -10, 60, 0, frozenset({19}), "smallint", "NO CYCLE")
LAST_DOWNWARDS = Counted(-1, -(2**15) + 20, -40, 50, 0, frozenset({-20}), "smallint", "NO CYCLE")


@pytest.fixture
def site(server: Server, database: Callable[[], Database]) -> Iterator[Site]:
    made = site_on(server, "london", database().name)
    yield made
    made.connection.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counted=COUNTED)
@example(counted=LAST_UPWARDS)
@example(counted=LAST_DOWNWARDS)
def test_the_next_number_is_after_every_row_that_the_sequence_would_meet(
    site: Site, counted: Counted
) -> None:
    with site.connection.transaction(force_rollback=True):
        counted.make(site)
        (before,) = sequences.read(site.connection, [TABLE])
        identity_ranges.pass_rows(site.connection, "london", [TABLE])
        (after,) = sequences.read(site.connection, [TABLE])
    ahead = range(before.next, before.next + counted.step * counted.width * 2, counted.step)
    handed_out = [number for number in ahead if number in counted.numbers and number in counted.held]
    met = [number for number in handed_out[:-1] if number in counted.met]
    assert after.next == (met[-1] + counted.step if met else before.next)
