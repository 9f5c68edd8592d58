"""Two to four copies in any topology live random lives, decided by the product's pure functions. An oracle that
knows no vector says what must come of it (docs/proof.md: I1 to I5, I7 to I9, I12)."""

import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from concord.rules import policy as conflict_policy
from concord.rules.initialization_rule import Side, Way
from concord.rules.initialization_rule import decide as initial_decision
from concord.rules.resolver import Priorities
from concord.versions.conflict import ConflictType, Outcome, classify
from concord.versions.position import Resume, Session
from concord.versions.row_version import RowVersion
from tests.histories import cleanup_in_memory, life, sites_in_memory
from tests.histories.cleanup_in_memory import Cleanup, Held
from tests.histories.life import Policy, judged_by, latest_timestamp, live
from tests.histories.script import FAMILIES, Script, script, shortened
from tests.histories.sites_in_memory import Copy, LinkRun

#: Of each family. More of them: HISTORIES=100000 pytest tests/histories/test_histories.py
HISTORIES = int(os.environ.get("HISTORIES", "400"))

#: Of which none follows the clock: what wins today may lose to what it had beaten elsewhere. The last two are no
#: orders at all: A may win over B, B over C, and C over A again; the sites agree all the same.
POLICIES = {
    "the earliest": conflict_policy.Policy(resolvers=("earliest_timestamp",)),
    "the source, then the higher site": conflict_policy.Policy(
        resolvers=("source_wins", "site_priority"), places={"oslo": 0, "paris": -1, "quito": -1, "rome": -2}
    ),
    "the publisher, by whose copy the others are brought back": conflict_policy.Policy(
        resolvers=("publisher_wins_and_reinitialize",),
        places={"oslo": 0, "paris": -1, "quito": -1, "rome": -2},
    ),
    "a delete, or the smaller value": conflict_policy.Policy(resolvers=("delete_wins", "minimum(price)")),
    "whatever is no delete": conflict_policy.Policy(resolvers=("update_wins",)),
    "the greater value, where both have one": conflict_policy.Policy(resolvers=("maximum(price)",)),
    "by type": conflict_policy.Policy(
        resolvers=("site_priority",),
        by_type={
            ConflictType.INSERT_INSERT: ("earliest_timestamp",),
            ConflictType.UPDATE_DELETE: ("maximum(price)",),
        },
    ),
}


def goes_wrong(found: Script, policy: Policy) -> bool:
    try:
        live(found, policy)
    except AssertionError:
        return True
    return False


def histories(family: str, seed: str) -> Iterator[Script]:
    return (script(family, f"{seed} {number}") for number in range(10**9))


def expect_no_violation(family: str, seed: str, many: int, policy: Policy = latest_timestamp) -> None:
    for found in islice(histories(family, seed), many):
        if goes_wrong(found, policy):
            fewest = shortened(found, lambda each: goes_wrong(each, policy))
            imports = "from tests.histories.life import live\nfrom tests.histories.script import Script"
            print(f"{imports}\nlive({fewest})")  # noqa: T201
            live(fewest, policy)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("hypothesis_seed"))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_history_breaks_an_invariant(family: str, seed: str) -> None:
    expect_no_violation(family, seed, HISTORIES)


@pytest.mark.parametrize("wins", POLICIES)
def test_any_policy_brings_all_sites_to_the_same_rows(wins: str, seed: str) -> None:
    for family in FAMILIES:
        expect_no_violation(family, seed, HISTORIES // 12, judged_by(POLICIES[wins]))


def test_a_script_repeats_its_life(seed: str) -> None:
    found = script("faults", seed)
    assert eval(str(found), {"Script": Script}) == found  # noqa: S307 - as a person would paste it
    assert live(found).copies == live(found).copies


#: Seoul joins Oslo while a transaction at Paris holds a row: of these versions Oslo has agreed to forget, Paris not.
JOINS_MEANWHILE = {
    "an insert, which Paris edits": (
        ("put", "oslo", 1),
        ("settle",),
        ("late", "paris", ((1, True),)),
        ("forget",),
    ),
    "a delete, whose key Paris does not use after all": (
        *(
            ("delete", "oslo", 2),
            ("settle",),
            ("late", "paris", ((2, True),)),
            ("purge",),
            ("roll_back", "paris"),
        ),
    ),
}


@pytest.mark.parametrize("steps", JOINS_MEANWHILE.values(), ids=JOINS_MEANWHILE)
def test_a_site_that_joins_takes_over_what_another_has_not_agreed_to_forget(steps: tuple[Any, ...]) -> None:
    """I1, I12"""
    priorities = {"oslo": 1, "paris": 2, "seoul": 1}
    found = Script(("oslo", "paris"), (("oslo", "paris"),), priorities, (*steps, ("join", "oslo")))
    assert live(found).copies.keys() == priorities.keys()


# The checker is checked: ways of doing it wrong are planted, and must be found.

Plant = Callable[[pytest.MonkeyPatch], None]


def rewrite_what_is_known(planted: pytest.MonkeyPatch) -> None:
    """No equality skip: what comes back is written once more, and travels again."""

    def always(self: LinkRun, each: sites_in_memory.Incoming, number: int, *, same: bool) -> None:
        united = self.target.version(each.key).united_with(each.version)
        self.target.put(
            each.key, self.target.rows.get(each.key), sites_in_memory.Shadow(united, None, number)
        )

    planted.setattr(LinkRun, "_unite", always)


def overlook_late_commits(planted: pytest.MonkeyPatch) -> None:
    """A watermark instead of a snapshot."""
    planted.setattr(Copy, "position", property(lambda self: f"{self.transaction}:"))


def trust_the_wall_clock(planted: pytest.MonkeyPatch) -> None:
    for module in (sites_in_memory, cleanup_in_memory):
        planted.setattr(module, "newest", lambda version: 0)


def break_no_ties(planted: pytest.MonkeyPatch) -> None:
    """Neither in the policy nor where two versions have seen each other: each hides the other's lack."""

    def order(priorities: Priorities) -> Any:
        return lambda version: (version.derived, version.changed_at)

    planted.setattr(sites_in_memory, "total_order", order)
    planted.setattr(
        life, "latest_timestamp", lambda priorities: lambda one, two: one.changed_at >= two.changed_at
    )


def purge_by_age(planted: pytest.MonkeyPatch) -> None:
    def old(self: Cleanup, site: Copy, sessions: object) -> set[Held]:
        return {(key, each.version.dot) for key, each in site.shadow.items() if each.version.deleted}

    planted.setattr(Cleanup, "_may_go", old)
    planted.setattr(cleanup_in_memory, "_all_agree", lambda stands: True)


def purge_without_a_floor(planted: pytest.MonkeyPatch) -> None:
    planted.setattr(Copy, "stamp_floor", property(lambda self: 0, lambda self, floor: None))


def believe_the_source_alone(planted: pytest.MonkeyPatch) -> None:
    """A link goes on where the source stands, although the target was put back (F65)."""

    def newest(source: list[Session], target: list[Session], one: str, other: str) -> Resume | None:
        return Resume(source[0], True) if source else None

    planted.setattr(sites_in_memory, "resume", newest)
    planted.setattr(life.Life, "_reunite", lambda *_, **__: None)


def log_outside_of_the_transaction(planted: pytest.MonkeyPatch) -> None:
    """A run that is killed before its commit leaves a defeat in the log that has not happened."""
    acquire = LinkRun.acquire

    def logging(self: LinkRun) -> Any:
        changes, session = acquire(self)
        aside = replace(self, target=deepcopy(self.target))
        for each in () if self.target.locked else changes:
            aside._write(each, 0)
        self.target.log |= aside.target.log
        return changes, session

    planted.setattr(LinkRun, "acquire", logging)


def keep_the_name_after_a_restore(planted: pytest.MonkeyPatch) -> None:
    planted.setattr(life, "replace", lambda old, incarnation: old)


def reinitialize_only_what_is_missing(planted: pytest.MonkeyPatch) -> None:
    rule = initial_decision

    def missing(incoming: Side, present: Side, way: Way, *others: Any, **more: Any) -> Any:
        return None if present.exists else rule(incoming, present, way, *others, **more)

    planted.setattr(sites_in_memory, "decide_initially", missing)


def forget_what_the_loser_had_seen(planted: pytest.MonkeyPatch) -> None:
    planted.setattr(RowVersion, "united_with", lambda self, other: self)


def keep_quiet_about_a_union(planted: pytest.MonkeyPatch) -> None:
    """`received_from` is always the source (F27)."""
    put = Copy.put

    def quietly(self: Copy, key: int, content: Any, shadow: Any) -> None:
        if shadow and shadow.version.origin != self.origin:
            shadow = replace(shadow, received_from=shadow.version.site)
        put(self, key, content, shadow)

    planted.setattr(Copy, "put", quietly)


def log_what_is_alike(planted: pytest.MonkeyPatch) -> None:
    """Two sites that did the very same thing are in conflict."""

    def without_content(*versions: RowVersion, same_thing: bool = False, **rest: Any) -> Outcome:
        return classify(*versions, **rest)  # type: ignore[arg-type]

    planted.setattr(sites_in_memory, "classify", without_content)


def take_rows_that_differ_for_one_thing(planted: pytest.MonkeyPatch) -> None:
    """Whatever two sites did: no loser is logged."""

    def always(*versions: RowVersion, same_thing: bool = False, **rest: Any) -> Outcome:
        return classify(*versions, same_thing=True, **rest)  # type: ignore[arg-type]

    planted.setattr(sites_in_memory, "classify", always)


PLANTED: dict[Plant, str] = {
    rewrite_what_is_known: "plain",
    overlook_late_commits: "late commits",
    trust_the_wall_clock: "faults",
    break_no_ties: "plain",
    purge_by_age: "purges",
    purge_without_a_floor: "purges",
    believe_the_source_alone: "restores",
    log_outside_of_the_transaction: "faults",
    keep_the_name_after_a_restore: "restores",
    reinitialize_only_what_is_missing: "restores",
    forget_what_the_loser_had_seen: "plain",
    keep_quiet_about_a_union: "plain",
    log_what_is_alike: "plain",
    take_rows_that_differ_for_one_thing: "plain",
}
#: Histories after which a planted error must have been found; most need a handful.
ENOUGH = 4000


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__.replace("_", " "))
def test_an_error_that_is_planted_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for found in islice(histories(PLANTED[plant], "planted"), ENOUGH):
        if goes_wrong(found, life.latest_timestamp):
            return
    pytest.fail("no history found it")
