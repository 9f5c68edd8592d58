"""The rules that tie a replication to the sites, the sets, and all else that writes its tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from concord.configuration.configuration import Configuration
from concord.jobs.max_delta import MaxDelta
from concord.jobs.replication import Conversions
from concord.jobs.throttle import Throttle
from concord.messages.errors import Problem
from tests.given.configured_replications import BACK, BASE, BOOKINGS, BOTH, COPY, section, written

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]


def test_a_replication_knows_its_tables_by_their_names_at_both_sites(parse: Parse) -> None:
    made = parse(written(to_capetown=BOOKINGS | {"schedule": '"@hourly"'})).replication("to_capetown")
    [table] = made.tables
    assert (made.publisher, made.subscriber, made.conversions) == ("london", "capetown", Conversions.COUNT)
    assert (table.name, str(table.at_site("capetown"))) == ("public.bookings", "b.bookings")
    refusing = parse(written(to_capetown=BOOKINGS | {"conversions": "refuse"})).replication("to_capetown")
    assert refusing.conversions is Conversions.REFUSE
    assert parse(written(back=BACK | {"capture": "triggers"})).replication("back").by_triggers, (
        "no log_reader"
    )
    limited = parse(written(to_capetown=BOOKINGS | {"max_delta": "{bytes: 20 GB, age: 3 d}"}))
    assert limited.replication("to_capetown").max_delta == MaxDelta(bytes=20 * 1024**3, age=timedelta(days=3))
    slow = {"throttle": '{operations_per_second: 5000, hours: "07:00-19:00 Europe/London"}'}
    assert parse(written(to_capetown=BOOKINGS | slow)).replication("to_capetown").throttle == Throttle(
        operations_per_second=5000, hours="07:00-19:00 Europe/London"
    )


@pytest.mark.parametrize(
    ("changed", "key", "message"),
    [
        ({"publisher": "londn"}, "publisher", "unknown site 'londn'; did you mean 'london'?"),
        ({"subscriber": "capetwn"}, "subscriber", "unknown site 'capetwn'; did you mean 'capetown'?"),
        ({"replication_set": "boking"}, "replication_set", "unknown replication set 'boking'; did you mean"),
        ({"subscriber": "london"}, "subscriber", "publisher and subscriber are the same site"),
        (BACK, "publisher", "site 'capetown' has no log_reader"),
        (
            {"replication_set": "flight_operations"},
            "subscriber",
            "ops.flights of 'capetown' is in a synchronization",
        ),
        ({"capture": "trigger"}, "capture", "unknown value; write 'log' or 'triggers'"),
        ({"capture": "triggers", "updates": "both"}, "capture", "write capture: log"),
        ({"conversions": "ignore"}, "conversions", "unknown value; write 'count', 'compare' or 'refuse'"),
        ({"schedule": "hourly"}, "schedule", ""),
        ({"schedule": '"@hourly"', "continuous": "{}"}, "continuous", "keep one of the two"),
        (
            {"watch": "{}", "continuous": "{}"},
            "continuous",
            "a watch beside it starts none; keep one of the two",
        ),
        ({"watch": "{poll: 100 ms}"}, "watch.poll", "asks the publisher too often; write 1 s or more"),
        ({"watch": "{linger: 1 h}"}, "watch.linger", "longer than 10 minutes; write continuous instead"),
        (
            {"watch": "{}", "capture": "triggers"},
            "watch",
            "looks at the log, which capture: triggers does without",
        ),
        ({"continuous": "{run_for: 10 s}"}, "continuous.run_for", "not between 1 minute and 11 hours"),
        ({"continuous": "{run_for: 12 h}"}, "continuous.run_for", "not between 1 minute and 11 hours"),
        ({"throttle": "{}"}, "throttle.operations_per_second", ""),
        ({"throttle": "{operations_per_second: 0}"}, "throttle.operations_per_second", ""),
        *(
            (
                {"throttle": f'{{operations_per_second: 9, hours: "{hours}"}}'},
                "throttle.hours",
                "write them as 07:00-19:00 Europe/London",
            )
            for hours in (
                "7-19",
                "07:00-19:00",
                "07:00-19:00 Europe/Londn",
                "07:00-07:00 UTC",
                "07:00-24:00 UTC",
            )
        ),
        ({"publsher": "london"}, "publsher", "unknown key; did you mean 'publisher'?"),
    ],
)
def test_a_mistake_in_a_replication_is_one_clear_line(
    problems: Problems, changed: dict[str, str], key: str, message: str
) -> None:
    """S4-172: of a site that is declared nowhere, and of a publisher that subscribes to itself, among others."""
    (problem, *_) = problems(written(to_capetown=BOOKINGS | changed))
    assert problem.key == f"replications.to_capetown.{key}"
    assert message in str(problem)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tracking", "{changed_at: a, deleted: b}", "does not yet read marks"),
    ],
)
def test_settings_that_only_links_follow_are_refused_and_not_left_undone(
    problems: Problems, key: str, value: str, message: str
) -> None:
    text = written(to_capetown=BOOKINGS).replace(
        "at: {capetown: b.bookings}", f"{key.split('.', maxsplit=1)[0]}: {value}"
    )
    (problem,) = problems(text)
    assert problem.key == f"replication_sets.bookings.tables[0].{key}"
    assert message in str(problem)


def test_a_table_has_one_replication_or_one_snapshot_that_writes_it(problems: Problems) -> None:
    """S4-172: there is such a subscription already."""
    (twice,) = problems(written(one=BOOKINGS, two=BOOKINGS))
    assert (twice.key, "written by the replication 'one' already" in twice.message) == (
        "replications.two.subscriber",
        True,
    )
    copy = COPY | {"source": "london", "target": "capetown", "from": "public.plans", "table": "b.bookings"}
    (also,) = problems(written(one=BOOKINGS) + section("snapshots", {"copy": copy}))
    assert (also.key, "written by the snapshot 'copy' already" in also.message) == (
        "replications.one.subscriber",
        True,
    )


def test_an_incremental_snapshot_of_a_replayed_table_is_refused_since_it_would_see_no_change(
    parse: Parse, problems: Problems
) -> None:
    copy = COPY | {"table": "r.copy"}
    assert parse(written(one=BOOKINGS) + section("snapshots", {"copy": copy})).snapshots
    (blind,) = problems(
        written(one=BOOKINGS) + section("snapshots", {"copy": copy | {"kind": "incremental"}})
    )
    assert (blind.key, "no incremental snapshot sees" in blind.message) == ("snapshots.copy.from", True)


def test_a_chain_of_replications_ends_somewhere(parse: Parse, problems: Problems) -> None:
    """S2-26: neither two replications nor a replication and a snapshot feed each other."""
    text = written(there=BOOKINGS, back=BACK).replace(
        "    connection: capetown\n", "    connection: capetown\n    log_reader: capetown_log\n"
    )
    assert {each.key for each in problems(text)} == {"replications.there", "replications.back"}
    (ring,) = problems(
        written(one=BOOKINGS) + section("snapshots", {"copy": COPY | {"table": "public.bookings"}})
    )
    assert (ring.key, "comes back to where it began" in ring.message) == ("replications.one", True)
    further = text.replace("\nreplication_sets:", "  reports: {connection: reports}\n\nreplication_sets:")
    further = further.replace("capetown, subscriber: london", "capetown, subscriber: reports")
    assert set(parse(further).replications) == {"there", "back"}, "a chain that ends elsewhere"


def test_both_ways_need_both_logs_and_form_a_hub_with_spokes(parse: Parse, problems: Problems) -> None:
    """S2-26: one site publishes to all the others, and nothing else writes its tables."""
    both = BOOKINGS | {"updates": "both"}
    assert [each.message for each in problems(written(a=both))] == ["site 'capetown' has no log_reader"]
    assert parse(BOTH + section("replications", {"a": both})).replication("a").both_ways

    turned = {**both, "publisher": "capetown", "subscriber": "london"}
    found = [each.message for each in problems(BOTH + section("replications", {"a": both, "b": turned}))]
    assert "users of both sites write public.bookings, and 'b' writes it at 'london' as well" in found


def test_continuous_runs_go_both_ways(parse: Parse) -> None:
    """S2-30: both directions stay as long."""
    both = BOOKINGS | {"updates": "both", "continuous": "{run_for: 2 h}"}
    made = parse(BOTH + section("replications", {"a": both})).replications["a"]
    assert made.stays == {"run_for": 7200.0, "linger": 7200.0}


def test_an_incremental_snapshot_of_a_hub_is_refused_since_it_would_see_no_change_of_a_spoke(
    problems: Problems,
) -> None:
    copied = {
        "kind": "incremental",
        "source": "london",
        "target": "capetown",
        "from": "public.bookings",
        "table": "b.copy",
    }
    both = section("replications", {"a": BOOKINGS | {"updates": "both"}})
    found = [problem.message for problem in problems(BOTH + both + section("snapshots", {"copy": copied}))]
    assert any("by a replication, whose changes no incremental snapshot sees" in each for each in found), (
        found
    )


def test_a_replication_is_called_like_no_synchronization(problems: Problems) -> None:
    (problem,) = problems(written(london_capetown=BOOKINGS))
    assert (problem.key, "both would make the DAG initialize__london_capetown" in problem.message) == (
        "replications.london_capetown",
        True,
    )


def test_a_log_reader_is_a_connection_of_its_site_alone(problems: Problems) -> None:
    (problem,) = problems(written(one=BOOKINGS).replace("log_reader: london_log", "log_reader: capetown"))
    assert (problem.key, "the same connection as site 'london'" in problem.message) == (
        "sites.capetown",
        True,
    )


def test_a_configuration_may_have_replications_alone_and_one_without_any_work_is_told_so(
    parse: Parse,
) -> None:
    alone, _, _ = BASE.partition("synchronizations:")
    assert parse(alone + section("replications", {"one": BOOKINGS})).notices == ()
    [notice] = parse(alone).notices
    assert (notice.key, "no synchronization, no snapshot and no replication" in notice.message) == (
        "sites",
        True,
    )


def test_triggers_choose_no_rows(problems: Problems) -> None:
    chosen = BASE.replace(
        "      - table: public.bookings\n", "      - table: public.bookings\n        where: id > 1\n"
    )
    found = problems(chosen + section("replications", {"a": BOOKINGS | {"capture": "triggers"}}))
    assert [each.message for each in found] == ["triggers do not yet choose rows"]


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_a_replication_has_the_columns_and_names_of_its_set(parse: Parse, capture: str) -> None:
    """S0-06: a column that the configuration leaves out leaves no site."""
    mapped = "columns: [id, name]\n        mappings: {capetown: {rename: {name: guest}}}"
    text = written(a=BOOKINGS | {"capture": capture}).replace("at: {capetown: b.bookings}", mapped)
    [table] = parse(text).replication("a").tables
    assert (table.columns_at("london"), table.columns_at("capetown")) == (("id", "name"), ("id", "guest"))


def test_a_replication_has_the_rows_of_its_set(parse: Parse) -> None:
    """S2-23: a row that the configuration leaves out leaves no site."""
    text = written(a=BOOKINGS).replace("at: {capetown: b.bookings}", "where: id > 1")
    [table] = parse(text).replication("a").tables
    assert table.filter_text == '"id" > 1'


def test_rows_are_whole_and_the_same_where_both_sites_write(problems: Problems) -> None:
    chosen = BOTH.replace(
        "      - table: public.bookings\n", "      - table: public.bookings\n        columns: [id]\n"
    )
    found = problems(chosen + section("replications", {"a": BOOKINGS | {"updates": "both"}}))
    assert [each.message for each in found] == ["where both sites write, rows are whole and the same at both"]


def test_queued_updating_says_how_conflicts_are_decided(parse: Parse, problems: Problems) -> None:
    """S2-04, S3-19, S3-20: row versions are kept of all changes to a table, or of none."""
    queued = BOOKINGS | {"updates": "queued"}
    plain = parse(BOTH + section("replications", {"a": queued})).replication("a")
    assert (plain.rejects, plain.rejects_whole, plain.queued) == (True, True, True)
    chosen = queued | {"conflict": "{policy: subscriber_wins, scope: row}"}
    assert not parse(BOTH + section("replications", {"a": chosen})).replication("a").rejects
    for changed, key, message in (
        ({"updates": "both", "conflict": "{scope: row}"}, "conflict", "write updates: queued"),
        ({"conversions": "refuse"}, "conversions", "rows differ until they are heard"),
    ):
        [found] = problems(BOTH + section("replications", {"a": queued | changed}))
        assert (found.key, message in str(found)) == (f"replications.a.{key}", True)
    oslo = BOTH.replace(
        "\nreplication_sets:", "  oslo: {connection: oslo, log_reader: oslo_log}\n\nreplication_sets:"
    )
    mixed = {"a": queued, "b": BOOKINGS | {"subscriber": "oslo", "updates": "both"}}
    [found] = problems(oslo + section("replications", mixed))
    assert (found.key, "updates: queued by 'a', and both here" in found.message) == (
        "replications.b.updates",
        True,
    )
    private = (BOTH + section("replications", {"a": queued})).replace(
        "at: {capetown: b.bookings}", "private: {name: dropped}"
    )
    [found] = problems(private)
    assert "does not yet withhold columns" in found.message
