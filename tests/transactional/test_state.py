"""Which of the five states a replication is in (S4-119, S4-140)."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.transactional.state import Facts, State, state

FACTS = st.builds(Facts, **{field.name: st.booleans() for field in fields(Facts)})


def test_each_state_has_the_number_that_programs_know() -> None:
    assert [(each.value, each.words) for each in State] == [
        (0, "off"),
        (1, "syncing"),
        (2, "in sync"),
        (3, "disconnected by remote"),
        (4, "disconnected locally"),
    ]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, State.IN_SYNC),
        ({"waits": True}, State.SYNCING),
        ({"waits": True, "run_is_on": True}, State.SYNCING),
        ({"paused": True}, State.OFF),
        ({"paused": True, "run_is_on": True}, State.IN_SYNC),
        ({"initialized": False}, State.OFF),
        ({"publisher_answers": False}, State.DISCONNECTED_BY_REMOTE),
        ({"log_is_kept": False}, State.DISCONNECTED_BY_REMOTE),
        ({"valid": False}, State.DISCONNECTED_BY_REMOTE),
        ({"subscriber_answers": False}, State.DISCONNECTED_LOCALLY),
        ({"stopped": True, "waits": True}, State.DISCONNECTED_LOCALLY),
        ({"held": True, "waits": True}, State.DISCONNECTED_LOCALLY),
        ({"stopped": True, "waits": True, "run_is_on": True}, State.SYNCING),
    ],
)
def test_a_healthy_replication_leaves_its_state_by_one_fact(changed: dict[str, bool], found: State) -> None:
    assert state(Facts(**changed)) is found


@given(FACTS)
def test_nothing_that_is_amiss_is_ever_told_as_in_sync_or_syncing(facts: Facts) -> None:
    """Both say that all is well, or will be without a person."""
    reachable = facts.publisher_answers and facts.subscriber_answers
    sound = facts.initialized and facts.valid and facts.log_is_kept
    waits_for_a_person = (facts.paused or facts.stopped or facts.held) and not facts.run_is_on
    well = reachable and sound and not waits_for_a_person
    assert (state(facts) in {State.SYNCING, State.IN_SYNC}) == well
    assert state(facts) is not State.IN_SYNC or not facts.waits


@given(FACTS)
def test_the_end_that_is_to_blame_is_named(facts: Facts) -> None:
    silent = replace(facts, subscriber_answers=False)
    assert state(silent) is State.DISCONNECTED_LOCALLY
    if state(facts) is State.DISCONNECTED_BY_REMOTE:
        mended = replace(facts, publisher_answers=True, valid=True, log_is_kept=True)
        assert state(mended) is not State.DISCONNECTED_BY_REMOTE
