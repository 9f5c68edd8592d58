"""How changes are found, by marks of the application or in the log: what the configuration says and refuses (S4-074,
S4-076, F19, S1-32 b)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import ConfigurationInvalid, Problem
from concord.tables.replication_set import Marks, TableName
from concord.terminal.status import show_marks
from tests.configuration.examples import spoiled

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]

MARKS = "changed_at: updated_at, deleted: is_deleted"


def tracked(settings: str, also: str = "key: [carrier]") -> str:
    return spoiled("key: [carrier]", f"{also}\n        tracking: {{{settings}}}")


def test_fifteen_minutes_are_the_tolerance_unless_told_otherwise(parse: Parse) -> None:
    assert parse(tracked(MARKS)).tables("london_capetown")[1].tracking == Marks(
        changed_at="updated_at", deleted="is_deleted", tolerance=900
    )
    full = f"{MARKS}, tolerance: 1 h, time_zone: {{capetown: Africa/Johannesburg}}, view: crm.live"
    assert parse(tracked(full)).tables("london_capetown")[1].tracking == Marks(
        changed_at="updated_at",
        deleted="is_deleted",
        tolerance=timedelta(hours=1).total_seconds(),
        time_zone={"capetown": "Africa/Johannesburg"},
        view=TableName(schema_name="crm", name="live"),
    )


@pytest.mark.parametrize(
    ("settings", "key", "said"),
    [
        ("changed_at: updated_at", "deleted", "missing"),
        ("changed_at: a, deleted: a", "deleted", "the same column"),
        (f"{MARKS}, tolerance: 59 s", "tolerance", "shorter than a transaction may last"),
        (f"{MARKS}, tolerance: 15", "tolerance", "needs a unit"),
        (f"{MARKS}, time_zone: {{capetwon: UTC}}", "time_zone.capetwon", "unknown site 'capetwon'"),
        (
            f"{MARKS}, time_zone: {{capetown: Africa/Johanesburg}}",
            "time_zone.capetown",
            "not the name of a time",
        ),
        (f"{MARKS}, time_zone: {{capetown: EST}}", "time_zone.capetown", "not the name of a time zone"),
        (f"{MARKS}, time_zone: {{capetown: '+02'}}", "time_zone.capetown", "not the name of a time zone"),
    ],
)
def test_a_mistake_is_named(problems: Problems, settings: str, key: str, said: str) -> None:
    (problem,) = problems(tracked(settings))
    assert problem.key == f"replication_sets.flight_operations.tables[1].tracking.{key}"
    assert said in problem.message


def test_marks_are_replicated_and_nothing_but_renamed(problems: Problems) -> None:
    (problem,) = problems(tracked(MARKS, "columns: [carrier, updated_at]"))
    assert problem.key.endswith("tracking.deleted")
    mapped = "mappings: {capetown: {values: {is_deleted: {map: {'true': 'Y', 'false': 'N'}}}}}"
    (problem,) = problems(tracked(MARKS, mapped))
    assert "a mark can only be renamed" in problem.hint


def test_a_table_is_tracked_in_one_way_whichever_set_lists_it(problems: Problems) -> None:
    twin = "  others: {tables: [{table: public.airlines, key: [carrier]}]}\nsynchronizations:"
    text = tracked(MARKS).replace("synchronizations:", twin)
    assert any("columns or tracking" in problem.message for problem in problems(text))


def test_the_status_states_the_tolerance(parse: Parse, capsys: pytest.CaptureFixture[str]) -> None:
    """S4-074: whoever looks at a synchronization sees that such a table's capture is not exact."""
    show_marks(parse(tracked(f"{MARKS}, tolerance: 20 min")))
    shown = capsys.readouterr().out
    assert "later than the tolerance" in shown
    assert "public.airlines" in shown
    assert "1200 s" in shown


LOG = "  london: {connection: london, log_reader: london_log, capture: log}"


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
    flights, airlines = parse(logged("key: [carrier]", f"tracking: {{{MARKS}}}")).tables("london_capetown")
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


MARKED = """\
sites:
  london: {connection: london}
  capetown: {connection: capetown}
replication_sets:
  shop:
    tables:
      - table: public.customer
        tracking: {changed_at: updated_at, deleted: is_deleted, tolerance: 15 min}
synchronizations:
  london_capetown: {replication_set: shop, source: london, target: capetown, tombstone_retention: 14 days}
"""


@pytest.mark.parametrize("age", ["10 min", "15 min"])
def test_a_purge_that_is_not_behind_the_tolerance_is_one_error(parse: Parse, age: str) -> None:
    """S4-076."""
    with pytest.raises(ConfigurationInvalid) as refused:
        parse(f"{MARKED}retention: {{versions: {age}}}\n")
    (problem,) = refused.value.problems
    assert problem.key == "retention.versions"
    assert "tolerance of marks (15 min)" in str(problem)


def test_a_tombstone_that_goes_within_the_tolerance_is_refused_alike(problems: Problems) -> None:
    """S4-076."""
    (problem,) = problems(MARKED.replace("14 days", "15 min"))
    assert problem.key == "synchronizations.london_capetown.tombstone_retention"


def test_half_an_hour_behind_a_tolerance_of_a_quarter_is_enough(parse: Parse) -> None:
    """S4-076."""
    configuration = parse(f'{MARKED}retention: {{versions: 30 min, cleanup_schedule: "*/10 * * * *"}}\n')
    assert configuration.retention.versions == timedelta(minutes=30)
    assert configuration.retention.cleanup_schedule == "*/10 * * * *"


def test_versions_are_kept_for_two_weeks_and_cleaned_daily_by_default(parse: Parse) -> None:
    """S4-078, S4-108: a log that is made is purged without another word."""
    configuration = parse(MARKED)
    assert configuration.retention.versions == timedelta(days=14)
    assert configuration.retention.cleanup_schedule == "@daily"
