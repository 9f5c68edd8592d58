"""Held conflicts, asked about and decided in Airflow; and at a terminal, as docs/waiting.md shows it."""

from dataclasses import replace
from typing import Any

import pendulum
import pytest

from concord.jobs.waiting import WaitingRow
from concord.orchestration.dags.resolve import LATER, OWN, SOURCE, TARGET, question
from tests.given.airflow_pair import Pair, states
from tests.orchestration.dags.answering_person import Answering

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


#: Braces as the body of a question has them, where Airflow would take two of them for a template.
ENCODED = {"{": "\N{FULLWIDTH LEFT CURLY BRACKET}", "}": "\N{FULLWIDTH RIGHT CURLY BRACKET}"}


@pytest.fixture
def holding(pair: Pair) -> Pair:
    """Flights 1 to 4 were changed at both sites, and nobody has decided."""
    pair.path.write_text(
        pair.path.read_text().replace("target: capetown,", "target: capetown, resolvers: [hold],")
    )
    pair.london.run("UPDATE flights SET note = 'london ' || flight WHERE flight <= 4")
    pair.capetown.run("UPDATE flights SET note = 'capetown {{ 111 * 111 }} | ' || flight WHERE flight <= 4")
    assert pair.run().state == "success"
    return pair


def notes(pair: Pair) -> list[tuple[str, str]]:
    query = "SELECT note FROM flights WHERE flight <= 4 ORDER BY flight"
    return [
        (ours, theirs)
        for ((ours,), (theirs,)) in zip(pair.london.run(query), pair.capetown.run(query), strict=True)
    ]


def test_a_question_shows_neither_private_values_nor_a_private_key() -> None:
    version = {"origin": "london#1", "changed_at": 1, "derived": 0}
    rows = [
        {"id": "anna", "passport": passport, "city": city}
        for passport, city in (("ZA1", "Durban"), ("GB2", None))
    ]
    known: dict[str, Any] = {
        "reason": "hold",
        "conflict_type": "update_update",
        "since": pendulum.now("UTC"),
        "tries": 1,
    }
    row = WaitingRow(
        site="capetown",
        synchronization="london_capetown",
        link="london_capetown/forward",
        table_name="public.person",
        key=["anna"],
        kind="held",
        incoming_version=version,
        incoming_row=rows[0],
        present_version=version,
        present_row=rows[1],
        private={"id", "passport"},
        key_is_private=True,
        **known,
    )
    asked = question(row)
    assert asked["subject"] == f"public.person (private) [{row.id}]"
    assert r"| passport | \(private\) | \(private\) |" in asked["body"]
    assert "| city | Durban | *NULL* |" in asked["body"]
    assert [secret for secret in ("anna", "ZA1", "GB2") if secret in str(asked)] == []
    deleted = question(replace(row, incoming_row=None))
    assert r"| passport | *no row* | \(private\) |" in deleted["body"]


def test_what_people_answer_is_carried_out_and_what_nobody_decides_waits_on(holding: Pair) -> None:
    answers = {
        "public.flights 1": (SOURCE, None),
        "public.flights 2": (TARGET, None),
        "public.flights 3": (OWN, '{"note": "both"}'),
        "public.flights 4": (LATER, None),
    }
    answering = Answering("resolve_conflicts", answers)
    answering.start()
    run = holding.run("resolve_conflicts", conf={"limit": 4})
    answering.join()
    assert run.state == "success", states(run)
    assert "12321" not in answering.bodies["public.flights 1"]
    shown = "".join(ENCODED.get(c, c) for c in "capetown {{ 111 \\* 111 }} \\| 1")
    assert shown in answering.bodies["public.flights 1"]
    assert holding.run().state == "success"
    theirs = "capetown {{ 111 * 111 }} | "
    assert notes(holding) == [
        ("london 1", "london 1"),
        (f"{theirs}2", f"{theirs}2"),
        ("both", "both"),
        ("london 4", f"{theirs}4"),
    ]
    resolvers = "SELECT resolver, reason FROM concord.conflict ORDER BY key"
    assert {reason.partition(":")[0] for _, reason in holding.capetown.run(resolvers)} == {"Ada decided"}
