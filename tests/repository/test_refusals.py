"""Which links status marks as refused, by how their newest transmission ended."""

from sqlalchemy import Engine

from concord.repository.refusals import Refusal, refusals
from concord.repository.transmissions import record_transmission
from tests.repository.records import DAY, MINUTE, NOON, begun, leased, report

FORWARD = "london_capetown/forward"


def transmitted(repository: Engine, day: int, code: str | None = None, **changed: object) -> None:
    """One transmission on that day, in a run of its own."""
    started = NOON + day * DAY
    run_id = begun(repository, leased(repository, started))
    failed = {"error_code": code, "error_message": code and f"{code}: do this", "tables": ()} if code else {}
    made = report(**failed, **changed)
    record_transmission(repository, run_id, made, started_at=started, ended_at=started + MINUTE)


def test_a_link_that_failed_for_good_is_refused_until_it_has_run_again(repository: Engine) -> None:
    transmitted(repository, 0)
    transmitted(repository, 1, "identity_changed")
    said = Refusal("identity_changed", "identity_changed: do this", NOON + DAY + MINUTE)
    assert refusals(repository) == {FORWARD: said}
    transmitted(repository, 2)
    assert refusals(repository) == {}


def test_a_link_that_will_be_tried_again_by_itself_is_not_refused(repository: Engine) -> None:
    transmitted(repository, 0, "site_unavailable")
    assert refusals(repository) == {}


def test_a_link_that_carried_some_of_its_tables_is_not_refused(repository: Engine) -> None:
    transmitted(repository, 0, "tables_stopped")
    assert refusals(repository) == {}


def test_a_plan_refuses_nothing_and_ends_no_refusal(repository: Engine) -> None:
    transmitted(repository, 0, "below_floor")
    transmitted(repository, 1, plan_only=True)
    assert {link: each.code for link, each in refusals(repository).items()} == {FORWARD: "below_floor"}
    transmitted(repository, 2)
    transmitted(repository, 3, "below_floor", plan_only=True)
    assert refusals(repository) == {}
