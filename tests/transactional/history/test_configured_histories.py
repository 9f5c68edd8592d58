"""The configuration of histories, and its rules (S0-49)."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from concord.configuration.configuration import Configuration
from concord.jobs.kept_history import KeptHistory
from concord.messages.errors import Problem
from tests.given.configured_replications import BASE, BOOKINGS, BOTH, COPY, section, written

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]
HISTORY = {"history": "{public.bookings: {table: reports.bookings_history}}"}


def test_a_history_stands_at_the_subscriber_in_its_tables_place(parse: Parse) -> None:
    made = parse(written(kept=BOOKINGS | HISTORY)).replication("kept")
    [table] = made.tables
    assert made.history == {"public.bookings": KeptHistory(version="version")}
    assert (str(table.at_site("london")), str(table.at_site("capetown"))) == (
        "public.bookings",
        "reports.bookings_history",
    )
    named = {"history": "{public.bookings: {table: reports.b, version: revision}}"}
    assert parse(written(kept=BOOKINGS | named)).replication("kept").history == {
        "public.bookings": KeptHistory(version="revision")
    }


def test_a_history_says_how_long_versions_are_kept_or_a_notice_that_it_grows_for_ever(parse: Parse) -> None:
    """S0-50."""
    kept = {"history": "{public.bookings: {table: reports.bookings_history, keep: 365 d}}"}
    made = parse(written(kept=BOOKINGS | kept))
    assert made.replication("kept").history["public.bookings"].keep == timedelta(days=365)
    assert not [each for each in made.notices if "grows for ever" in str(each)]
    [notice] = [each for each in parse(written(kept=BOOKINGS | HISTORY)).notices if "grows" in str(each)]
    assert notice.key == "replications.kept.history.'public.bookings'"


def test_beside_it_another_replication_keeps_the_rows(parse: Parse) -> None:
    parse(written(kept=BOOKINGS | HISTORY, copied=BOOKINGS))


@pytest.mark.parametrize(
    ("changed", "key", "message"),
    [
        (
            HISTORY | {"updates": "queued"},
            "history",
            "kept where the publisher's users alone write, and they are queued",
        ),
        (HISTORY | {"updates": "both"}, "history", "and they are both"),
        (
            HISTORY | {"procedures": "[public.close]"},
            "history",
            "a call travels without the changes it makes",
        ),
        (
            {"history": "{public.boking: {table: reports.b}}"},
            "'public.boking'",
            "unknown table 'public.boking'; did you mean 'public.bookings'?",
        ),
        (
            {"history": "{public.bookings: {table: reports.b, version: entry}}"},
            "version",
            "a history has a column entry of its own",
        ),
    ],
)
def test_a_mistake_in_a_history_is_named_with_its_place(
    problems: Problems, changed: dict[str, str], key: str, message: str
) -> None:
    file = BOTH + section("replications", {"kept": BOOKINGS | changed})
    found = [each for each in problems(file) if each.key.endswith(key)]
    assert any(message in str(each) for each in found), problems(file)


def test_a_column_of_the_set_has_no_name_of_the_historys_own(problems: Problems) -> None:
    file = written(kept=BOOKINGS | HISTORY).replace(
        "- table: public.bookings\n", "- table: public.bookings\n        columns: [id, operation]\n"
    )
    assert any("a column operation, which its history has of its own" in str(each) for each in problems(file))


@pytest.mark.parametrize("other", ["replication", "history", "snapshot"])
def test_nothing_else_writes_a_history(problems: Problems, other: str) -> None:
    copy, another_mistake = "", BOOKINGS | {"subscriber": "london"}
    replications = {"kept": BOOKINGS | HISTORY, "to_itself": another_mistake}
    if other == "replication":
        replications["other"] = BOOKINGS | {"history": "{public.bookings: {table: reports.bookings_history}}"}
    elif other == "history":
        replications["kept"] = BOOKINGS | {"history": "{public.bookings: {table: b.bookings}}"}
        replications["other"] = BOOKINGS
    else:
        back = COPY | {"source": "london", "target": "capetown", "from": "public.bookings"}
        copy = section("snapshots", {"copy": back | {"table": "reports.bookings_history"}})
    file = BASE + copy + section("replications", replications)
    assert any("is written by" in str(each) for each in problems(file)), problems(file)


def test_two_tables_have_two_histories(problems: Problems) -> None:
    both = {"history": "{public.bookings: {table: reports.b}, public.fees: {table: reports.b}}"}
    file = written(kept=BOOKINGS | both).replace(
        "- table: public.bookings\n", "- table: public.fees\n      - table: public.bookings\n"
    )
    assert any("reports.b is the history of two tables" in str(each) for each in problems(file))
