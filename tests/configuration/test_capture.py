"""A site whose changes are read from its log: what the configuration says of it, and what it refuses (S1-32 b)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem
from tests.configuration.examples import spoiled

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]

LOG = "  london: {connection: london, log_reader: london_log, capture: log}"
MARKS = "tracking: {changed_at: updated_at, deleted: is_deleted}"


def logged(old: str = "", new: str = "") -> str:
    text = spoiled("  london: {connection: london}", LOG)
    assert text.count(old) >= 1
    return text.replace(old, new, 1) if old else text


def test_triggers_capture_unless_a_site_says_log(parse: Parse) -> None:
    # S1-32 b
    before = parse(spoiled("  london: {connection: london}", "  london: {connection: london}"))
    assert {table.by_log for table in before.tables("london_capetown")} == {()}
    assert {table.by_log for table in parse(logged()).tables("london_capetown")} == {("london",)}


def test_marks_of_the_application_tell_of_their_table_at_every_site(parse: Parse) -> None:
    """Two tables of one synchronization, found in two ways."""
    flights, airlines = parse(logged("key: [carrier]", MARKS)).tables("london_capetown")
    assert (flights.by_log, airlines.by_log) == (("london",), ())


@pytest.mark.parametrize(
    ("old", "new", "key", "said"),
    [
        (", log_reader: london_log", "", "sites.london.capture", "needs a log_reader beside it"),
        (
            "key: [carrier]",
            "columns: [carrier, name]",
            "replication_sets.flight_operations.tables[1].columns",
            "not in which columns",
        ),
        (
            "key: [carrier]",
            "where: carrier = 'AA'",
            "replication_sets.flight_operations.tables[1].where",
            "a table with a row filter",
        ),
        (
            "key: [carrier]",
            "resolvers: [merge_columns, latest_timestamp]",
            "replication_sets.flight_operations.tables[1]",
            "merge_columns: needs the row as it was before an edit",
        ),
        (
            'schedule: "*/5 * * * *"',
            'schedule: "*/5 * * * *"\n    watch: {}',
            "synchronizations.london_capetown.watch",
            "no triggers, which would tell of commits",
        ),
    ],
)
def test_what_keys_alone_do_not_tell_is_refused(
    problems: Problems, old: str, new: str, key: str, said: str
) -> None:
    (problem,) = problems(logged(old, new))
    assert problem.key == key
    assert said in str(problem)


SNAPSHOT = """
snapshots:
  flights_copy: {kind: incremental, source: london, target: capetown, from: public.flights, table: public.copy}
"""


def test_an_incremental_snapshot_reads_no_log(problems: Problems, parse: Parse) -> None:
    (problem,) = problems(logged() + SNAPSHOT)
    assert problem.key == "snapshots.flights_copy.kind"
    assert "make the snapshot non_incremental" in str(problem)
    parse(logged() + SNAPSHOT.replace("incremental", "non_incremental"))
    parse(logged() + SNAPSHOT.replace("public.flights", "public.pilots"))
