"""Between sites that are far apart every round trip counts: how often a link turns to the far one, and logs in."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from benchmarks.way import Way, way
from concord.jobs.link import Direction, TransmissionReport
from spark_jobs.link import transmit
from tests.given.fixtures import MakePair
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

#: The round trips of a login: the question whether to encrypt, the login, two answers to its challenge, and the
#: session's first statement.
LOGIN = 5


@dataclass
class Far:
    """A pair whose Cape Town is far away from London and the driver."""

    sites: Pair
    to: Way

    def run(self, direction: Direction, steps: list[tuple[str, int]] | None = None) -> TransmissionReport:
        """One link; `steps` are given each step's name, and the turns until then."""
        plain = self.sites.job(direction)
        end = "target" if direction is Direction.FORWARD else "source"
        job = plain.model_copy(update={end: self.to.to(getattr(plain, end))})
        self.to.forget()
        heard = [] if steps is None else steps
        return transmit(job, self.sites.spark, lambda step: heard.append((step, self.to.turns)))

    def edit(self, rows: int) -> None:
        self.sites.london.run(f"UPDATE parcel SET weight = weight + 1 WHERE id <= {rows}")


@pytest.fixture
def far(pair: MakePair) -> Iterator[Far]:
    sites = pair(
        "CREATE TABLE parcel (id int PRIMARY KEY, weight int)",
        "CREATE TABLE ship (id int PRIMARY KEY, name text)",
        "INSERT INTO parcel SELECT n, n FROM generate_series(1, 2000) n",
    )
    server = sites.capetown.access.applier
    with way(server.host, server.port) as open_way:
        yield Far(sites, open_way)


def test_a_link_logs_in_once_where_it_writes_and_twice_where_it_reads(far: Far) -> None:
    far.edit(1)
    for direction, logins in ((Direction.FORWARD, 1), (Direction.REVERSE, 2)):
        far.run(direction)
        assert far.to.logins == logins


@pytest.mark.parametrize("rows", [1, 999])
def test_what_turns_to_a_far_target_is_as_often_as_the_book_says_however_many_rows_there_are(
    far: Far, rows: int
) -> None:
    # From 1,000 on Spark's tasks, whoever reads ahead and whoever flushes the log turn to it as well.
    far.run(Direction.FORWARD)
    far.edit(rows)
    assert far.run(Direction.FORWARD).total("applied") == rows
    assert far.to.turns <= LOGIN + 16


def test_a_link_back_that_finds_nothing_turns_less_often(far: Far) -> None:
    far.edit(1)
    far.run(Direction.FORWARD)
    far.run(Direction.REVERSE)
    assert far.to.turns <= 2 * LOGIN + 8


def test_users_of_the_far_site_wait_for_few_round_trips(far: Far) -> None:
    # Rows are locked from the write of the base table until the commit.
    far.run(Direction.FORWARD)
    far.edit(10)
    steps: list[tuple[str, int]] = []
    far.run(Direction.FORWARD, steps)
    turns = dict(steps)
    assert turns["clean_up"] - turns["base"] <= 3


def test_a_second_table_costs_few_round_trips_more(far: Far) -> None:
    turns = []
    for more in ((), ("INSERT INTO ship VALUES (1, 'RRS Discovery')",)):
        far.edit(1)
        far.sites.london.run(*more)
        far.run(Direction.FORWARD)
        turns.append(far.to.turns)
    assert turns[1] - turns[0] <= 8
