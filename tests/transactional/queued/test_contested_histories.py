"""Histories of a hub with two spokes, whose users give few nicknames to many people: they end equal (S2-04)."""

import random
from collections.abc import Callable

import pytest

from concord.databases.postgresql.entries import from_log
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.hub_histories import run_with_kills
from tests.given.queued_preferences import are_alike, hub
from tests.given.replicated_accounts import Make
from tests.given.site import Site

PEOPLE, NICKNAMES = 30, 4
NAMED = "SELECT count(*) FROM preference WHERE nickname IS NOT NULL"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_log, "OPERATIONS", 8)


def write(chance: random.Random, site: Site) -> None:
    """A nickname goes to a person who may be new, from one who had it, or around."""
    person, name = chance.randint(1, PEOPLE), chance.randint(1, NICKNAMES)
    value = chance.randrange(10**9)
    free = f"UPDATE preference SET nickname = NULL, size = {value} WHERE nickname = {name}"
    given = (
        f"INSERT INTO preference VALUES ({person}, '{value}', 0, {name}) ON CONFLICT (person)"
        f" DO UPDATE SET nickname = {name}, colour = '{value}'"
    )
    around = (
        f"UPDATE preference SET nickname = -1 WHERE nickname = {name};"
        f" UPDATE preference SET nickname = {name} WHERE nickname = {name % NICKNAMES + 1};"
        f" UPDATE preference SET nickname = {name % NICKNAMES + 1} WHERE nickname = -1"
    )
    statements = [
        f"{free}; {given}",
        f"{free}; {given}",
        f"DELETE FROM preference WHERE nickname = {name}; {given}",
        f"DELETE FROM preference WHERE person = {person}",
        f"UPDATE preference SET size = {value} WHERE person = {person}",
        around,
    ]
    site.run(f"BEGIN; {chance.choice(statements)}; COMMIT")


@pytest.mark.parametrize(
    ("policy", "scope"),
    [
        ("publisher_wins", "row"),
        ("subscriber_wins", "transaction"),
        # Of these, test_contested_values.py shows the same with edits that it chooses.
        pytest.param("publisher_wins", "transaction", marks=pytest.mark.long),
        pytest.param("publisher_wins_and_reinitialize", "row", marks=pytest.mark.long),
    ],
)
def test_all_sites_end_equal_whoever_was_given_a_nickname_twice(
    replicated: Make,
    server_with_logins: Server,
    database: Callable[[], Database],
    policy: str,
    scope: str,
) -> None:
    """S2-04, S4-143: no run is refused, also where some are killed, and losers are logged."""
    with hub(replicated, server_with_logins, database, policy=policy, scope=scope) as spokes:
        run_with_kills(spokes, write, seed=len(policy + scope), steps=40)
        assert all(map(are_alike, spokes))
        lost = "SELECT count(*) FROM concord.conflict WHERE type = 'uniqueness'"
        assert spokes[0].london.value(lost) > 0, "the histories show something"
        assert spokes[0].london.value(NAMED) > 0
