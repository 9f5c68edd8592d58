"""Histories of a hub with two spokes, all of whose users write the same few rows: they end equal (T9)."""

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partialmethod

import psycopg
import pytest

from concord.databases.postgresql.entries import from_log
from concord.databases.postgresql.queued.procedure import QueuedTable
from concord.databases.postgresql.queued.versioned_rows import VersionedRows
from concord.jobs.link import Direction
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.hub_histories import Spokes, history, run_with_kills, settled
from tests.given.queued_preferences import are_alike, hub, preferences, settle
from tests.given.replicated_accounts import Make
from tests.given.site import Site

PEOPLE = 6


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_log, "OPERATIONS", 8)


def _write(chance: random.Random, site: Site) -> None:
    """A transaction of one statement or several, each value of it written once in all the history."""
    person, other, value = chance.randint(1, PEOPLE), chance.randint(1, PEOPLE), chance.randrange(10**9)
    free = f"NOT EXISTS (SELECT FROM preference WHERE person = {other})"
    statements = [
        f"INSERT INTO preference VALUES ({person}, '{value}') ON CONFLICT (person) DO UPDATE SET size = {value}",
        f"UPDATE preference SET colour = '{value}' WHERE person = {person}",
        f"UPDATE preference SET size = {value} WHERE person IN ({person}, {other})",
        f"DELETE FROM preference WHERE person = {person}",
        f"UPDATE preference SET person = {other} WHERE person = {person} AND {free}",
        # The value that it had: its content says no more of the edits between.
        f"UPDATE preference SET colour = 'colour {person}', size = {person} WHERE person = {person}",
    ]
    made = chance.choices(statements, k=chance.choice([1, 1, 2, 3]))
    site.run(f"BEGIN; {'; '.join(made)}; COMMIT")


def _lost(spokes: Spokes) -> int:
    return int(spokes[0].london.value("SELECT count(*) FROM concord.conflict"))


@pytest.mark.parametrize(
    ("policy", "scope"),
    [
        ("publisher_wins", "transaction"),
        ("subscriber_wins", "transaction"),
        pytest.param("publisher_wins", "row", marks=pytest.mark.long),
    ],
)
def test_all_sites_end_equal_in_content_and_versions_and_losers_are_logged(
    replicated: Make,
    server_with_logins: Server,
    database: Callable[[], Database],
    policy: str,
    scope: str,
) -> None:
    """S3-19, S3-20, S4-143: also where runs are killed."""
    with hub(replicated, server_with_logins, database, policy=policy, scope=scope) as spokes:
        run_with_kills(spokes, _write, seed=len(policy + scope), steps=50)
        assert all(map(are_alike, spokes))
        assert _lost(spokes) > 5


def _by_content(table: QueuedTable) -> str:
    """Judge a row by the image that it had at the other site before the entry."""
    rows = table.rows
    [key] = rows.key
    before = (
        "SELECT CASE WHEN b.operation <> 'I' THEN ROW(b.o0, b.o1, b.o2)::text END"
        f" FROM {rows.table.staged} b WHERE b.seq >> 40 = r.seq >> 40"
        f" AND CASE WHEN b.operation = 'I' THEN b.c0 ELSE b.o0 END = {key} ORDER BY b.seq LIMIT 1"
    )
    here = f"SELECT ROW(t.person, t.colour, t.size)::text FROM {rows.sql} t WHERE {rows.at(rows.key)}"
    return f"""
          IF ({before}) IS DISTINCT FROM ({here}) THEN
            contested := true;
            {table.contested.met};
          END IF;"""


def _unguarded(rows: VersionedRows, upsert: Callable[[VersionedRows], str], where: str = "") -> str:
    return upsert(rows)


def test_a_decision_by_content_would_leave_the_sites_unequal(
    replicated: Make,
    server_with_logins: Server,
    database: Callable[[], Database],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """T9, an error planted: a row that is as it was before the change has not stayed so."""
    monkeypatch.setattr(QueuedTable, "_judged", property(_by_content))
    monkeypatch.setattr(VersionedRows, "upsert", partialmethod(_unguarded, VersionedRows.upsert))
    with hub(replicated, server_with_logins, database, policy="subscriber_wins") as spokes:
        for sites, direction in history(spokes, _write, seed=3, steps=60):
            sites.run(direction=direction)
        settled(spokes)
        assert not all(map(are_alike, spokes))


def test_users_of_both_sites_write_while_runs_go_on(replicated: Make) -> None:
    """S4-135: an entry that meets a user's lock is judged anew."""
    sites = preferences(replicated, scope="row")
    stop = threading.Event()

    def user(site: Site, seed: int) -> None:
        chance = random.Random(seed)
        with site.log_in(site.superuser) as connection:
            while not stop.wait(0.02):
                person, value = chance.randint(1, PEOPLE), chance.randrange(10**9)
                with (
                    suppress(psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected),
                    connection.transaction(),
                ):
                    connection.execute("UPDATE preference SET size = %s WHERE person = %s", [value, person])
                    connection.execute("DELETE FROM preference WHERE person = %s", [PEOPLE + 1 - person])
                    connection.execute("INSERT INTO preference VALUES (%s, 'x')", [PEOPLE + 1 - person])

    users = [threading.Thread(target=user, args=(site, n)) for n, site in enumerate(sites.sites * 2)]
    for each in users:
        each.start()
    for _ in range(2):
        for direction in Direction:
            sites.run(direction=direction, run_for=1.0)
    stop.set()
    for each in users:
        each.join()
    settle(sites)
    assert are_alike(sites)
    assert sites.london.value("SELECT count(*) FROM concord.conflict") > 0
