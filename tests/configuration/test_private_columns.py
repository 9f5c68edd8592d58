"""The columns of a table that the ledger does not show, and the notifier of its conflicts: as the configuration
says it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem
from concord.tables.privacy import Treatment
from tests.configuration.examples import VALID, spoiled

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]


def private(columns: str, also: str = "") -> str:
    return spoiled("key: [carrier]", f"key: [carrier]{also}\n        private: {{{columns}}}")


def notified(settings: str) -> str:
    return spoiled("tombstone_retention: 14 days", f"notify: {{{settings}}}")


def test_columns_are_stored_unless_they_are_told_to_be_hashed_or_dropped(parse: Parse) -> None:
    flights, airlines = parse(private("iban: hashed, note: dropped, name: stored")).tables("london_capetown")
    assert flights.private == {}
    assert airlines.private == {
        "iban": Treatment.HASHED,
        "note": Treatment.DROPPED,
        "name": Treatment.STORED,
    }


def test_a_column_may_be_called_what_a_secret_is(parse: Parse) -> None:
    """These are the very columns that the ledger should not show."""
    renamed = "\n        mappings: {capetown: {rename: {url: link}}}"
    _, airlines = parse(private("password: hashed, api_token: dropped", renamed)).tables("london_capetown")
    assert airlines.private == {"password": Treatment.HASHED, "api_token": Treatment.DROPPED}


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        (private("iban: hidden"), "private.iban", "'stored', 'hashed' or 'dropped'"),
        (
            private("iabn: hashed", "\n        columns: [carrier, iban]"),
            "private.iabn",
            "did you mean 'iban'?",
        ),
    ],
)
def test_a_slip_in_a_private_column_is_named(problems: Problems, text: str, key: str, message: str) -> None:
    (problem,) = problems(text)
    assert problem.key == f"replication_sets.flight_operations.tables[1].{key}"
    assert message in str(problem)


def test_a_table_that_two_sets_share_is_private_in_both(problems: Problems) -> None:
    twin = (
        "  others:\n    tables:\n      - {table: public.airlines, key: [carrier], private: {iban: hashed}}\n"
        "\nsynchronizations:\n  capetown_oslo: {replication_set: others, source: capetown, target: oslo}\n"
    )
    text = VALID.replace("\nsynchronizations:\n", twin).replace(
        "sites:\n", "sites:\n  oslo: {connection: oslo}\n"
    )
    (problem,) = problems(text)
    assert "the same table" in problem.message
    assert "private columns" in problem.message


def test_somebody_is_told_above_a_number_or_a_share(parse: Parse) -> None:
    settings = parse(notified('conflicts: 100, rate: "2.5 %", through: alerts')).synchronizations[
        "london_capetown"
    ]
    assert settings.notify is not None
    assert (settings.notify.conflicts, settings.notify.rate, settings.notify.through) == (
        100,
        0.025,
        "alerts",
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("through: alerts", "says not when; give conflicts, rate, or both"),
        ("conflicts: 1", "through"),
        ("conflicts: -1, through: alerts", "too small; write 0 or more"),
        ('rate: "101 %", through: alerts', "not a share"),
        ("rate: 5, through: alerts", "not a share"),
        (
            'conflicts: 1, through: "https://hooks.example.org/x"',
            "looks like an address or a password; store it in an Airflow connection",
        ),
    ],
)
def test_a_slip_in_whom_to_tell_is_named(problems: Problems, settings: str, message: str) -> None:
    assert message in "\n".join(map(str, problems(notified(settings))))
