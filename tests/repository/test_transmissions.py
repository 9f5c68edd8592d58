"""A transmission is recorded once, with counts that add up, and tells its link when it was last done."""

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from concord.jobs.link import Direction, TableReport, TransmissionReport
from concord.messages.errors import CountMismatch, LeaseLost
from concord.repository.runs import Scope
from concord.repository.status import LinkStatus, TransmissionStatus, links, transmissions
from concord.repository.transmissions import record_transmission
from tests.repository.records import DAY, MINUTE, NOON, PAIR, begun, leased, report


@pytest.fixture
def run_id(repository: Engine) -> str:
    return begun(repository, leased(repository))


def record(repository: Engine, run_id: str, what: TransmissionReport, started_at: datetime = NOON) -> None:
    record_transmission(repository, run_id, what, started_at=started_at, ended_at=started_at + MINUTE)


def failed(**changed: Any) -> TransmissionReport:
    return report(error_code="site_unavailable", error_message="capetown does not answer", **changed)


def test_a_transmission_is_recorded_with_rows_per_table_and_in_total(repository: Engine, run_id: str) -> None:
    what = report()
    record(repository, run_id, what)
    assert transmissions(repository, run_id) == [
        TransmissionStatus(
            id=what.transmission,
            run_id=run_id,
            direction="forward",
            source="london",
            target="capetown",
            plan_only=False,
            started_at=NOON,
            ended_at=NOON + MINUTE,
            state="succeeded",
            error_code=None,
            error_message=None,
            bytes=2**40,
            seconds={"acquire": 1.5, "write": 0.25},
            tables=[table.model_dump() for table in what.tables],
            acquired=20,
            applied=5,
            converged=3,
            superseded=2,
            lost=1,
            filtered=4,
            held=3,
            quarantined=2,
            conflicts=1,
            not_owned=2,
            inserted_for_update=1,
            lag=None,
            rows_per_second=80,
        )
    ]


def test_a_transmission_recorded_twice_is_recorded_once(repository: Engine, run_id: str) -> None:
    what = report()
    record(repository, run_id, what)
    record(repository, run_id, what)
    assert len(transmissions(repository, run_id)) == 1


def test_a_late_failure_does_not_overwrite_a_success(repository: Engine, run_id: str) -> None:
    # F58
    record(repository, run_id, report(transmission="a1"))
    record(repository, run_id, failed(transmission="a1"))
    (only,) = transmissions(repository, run_id)
    assert (only.state, only.error_code) == ("succeeded", None)


def test_a_failure_whose_commit_turns_out_well_becomes_a_success(repository: Engine, run_id: str) -> None:
    record(repository, run_id, failed(transmission="a1"))
    record(repository, run_id, report(transmission="a1"))
    (only,) = transmissions(repository, run_id)
    assert (only.state, only.error_code, only.error_message) == ("succeeded", None, None)


def test_a_failed_transmission_keeps_its_error_and_needs_no_sum(repository: Engine, run_id: str) -> None:
    half_way = (TableReport(table="public.flights", acquired=10, applied=4),)
    record(repository, run_id, failed(tables=half_way))
    (only,) = transmissions(repository, run_id)
    assert (only.state, only.error_code) == ("failed", "site_unavailable")
    assert only.error_message == "capetown does not answer"


def test_rows_that_do_not_add_up_are_refused_and_name_the_table(repository: Engine, run_id: str) -> None:
    # Rule 11; the two tables together would add up
    tables = (
        TableReport(table="public.flights", acquired=10, applied=9),
        TableReport(table="public.planes", acquired=10, applied=11),
        TableReport(table="public.airlines", acquired=1, applied=1),
    )
    with pytest.raises(CountMismatch, match=r"for public\.flights, public\.planes: acquired must equal"):
        record(repository, run_id, report(tables=tables))
    assert transmissions(repository, run_id) == []


def test_the_database_too_refuses_rows_that_do_not_add_up(repository: Engine, run_id: str) -> None:
    # Rule 11
    record(repository, run_id, report())
    with pytest.raises(IntegrityError, match="ck_transmission_adds_up"), repository.begin() as connection:
        connection.execute(text("UPDATE transmission SET lost = lost + 1"))


def test_more_rows_than_32_bits_can_count_are_counted(repository: Engine, run_id: str) -> None:
    record(repository, run_id, report(tables=(TableReport(table="t", acquired=2**40, applied=2**40),)))
    (only,) = transmissions(repository, run_id)
    assert only.acquired == 2**40


def test_a_completed_transmission_hands_its_start_time_to_its_link(repository: Engine, run_id: str) -> None:
    # S1-18
    record(repository, run_id, report())
    reverse = report(direction=Direction.REVERSE, source="capetown", target="london")
    record(repository, run_id, reverse, NOON + MINUTE)
    assert links(repository) == [
        LinkStatus(PAIR, "forward", "london", "capetown", NOON),
        LinkStatus(PAIR, "reverse", "capetown", "london", NOON + MINUTE),
    ]


def test_a_failed_transmission_leaves_the_start_time_of_its_link(repository: Engine, run_id: str) -> None:
    # S1-21
    record(repository, run_id, failed())
    assert links(repository) == [LinkStatus(PAIR, "forward", "london", "capetown", None)]
    record(repository, run_id, report())
    record(repository, run_id, failed(), NOON + DAY)
    assert links(repository)[0].last_started_at == NOON


def test_an_older_transmission_recorded_late_does_not_set_its_link_back(
    repository: Engine, run_id: str
) -> None:
    record(repository, run_id, report(), NOON + DAY)
    record(repository, run_id, report(), NOON)
    assert links(repository)[0].last_started_at == NOON + DAY


@pytest.mark.parametrize(
    ("scope", "start"),
    [
        (Scope(), NOON),
        (Scope(direction=Direction.FORWARD), NOON),
        (Scope(tables=["public.flights"]), None),
        (Scope(plan_only=True), None),
    ],
)
def test_a_link_is_done_only_when_everything_it_had_was_sent(
    repository: Engine, scope: Scope, start: datetime | None
) -> None:
    run_id = begun(repository, leased(repository), scope)
    record(repository, run_id, report(plan_only=scope.plan_only))
    assert links(repository)[0].last_started_at == start


def test_a_transmission_of_a_lost_repository_is_refused_in_words(repository: Engine) -> None:
    # F64
    with pytest.raises(LeaseLost, match="does not know run 7f"):
        record(repository, "7f", report())
