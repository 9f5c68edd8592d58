"""Consumers in the configuration (S0-41)."""

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.jobs.consumer import of_consumer
from concord.jobs.largest import Largest
from concord.messages.errors import Problem
from tests.given.configured_replications import BOOKINGS, BOTH, section, written

Problems = Callable[[str | bytes], tuple[Problem, ...]]

READ = BOOKINGS | {"consumers": "[warehouse, history]"}


def test_a_consumer_reads_the_tables_of_its_replication_under_its_own_name(
    parse: Callable[[str | bytes], Configuration],
) -> None:
    made = parse(written(one=READ | {"largest_transaction": "{operations: 5}"})).replication("one")
    assert made.consumers == ("warehouse", "history")
    found = of_consumer(made, "warehouse")
    assert (found.name, found.replication_set, found.publisher) == ("warehouse", "bookings", "london")
    assert (found.consumers, found.largest_transaction) == ((), Largest())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (written(one=BOOKINGS | {"consumers": "[one]"}), "the replication one has the name one already"),
        (written(one=BOOKINGS | {"consumers": "[a, a]"}), "a consumer of one has the name a already"),
        (written(one=BOOKINGS | {"consumers": "[Big]"}), "not a name"),
        (
            BOTH + section("replications", {"one": READ | {"updates": "both"}}),
            "consumers read what goes one way",
        ),
    ],
)
def test_a_name_belongs_to_one_and_what_goes_both_ways_has_no_consumers(
    problems: Problems, text: str, message: str
) -> None:
    assert message in " ".join(map(str, problems(text)))
