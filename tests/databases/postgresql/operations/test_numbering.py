"""Numbers that are given while users commit: each operation finds the row that the one before it left (S4-113)."""

import random
import threading
from collections.abc import Callable
from contextlib import closing, suppress

import psycopg

from concord.databases.postgresql.facts.connection import connect
from concord.databases.postgresql.operations import numbering
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLIER

HOT = (
    "CREATE TABLE hot (id int PRIMARY KEY, n int NOT NULL)",
    "CREATE TABLE cold (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int)",
)
SESSIONS, ENOUGH = 5, 150


def write(sites: Replicated, session: int, begun: threading.Barrier) -> None:
    """Transactions over few rows: they wait for each other, roll back savepoints, and end in deadlocks."""
    dice = random.Random(session)
    with sites.london.log_in(sites.london.superuser, autocommit=False) as user:
        user.execute("SET deadlock_timeout = '5ms'")
        begun.wait()
        for _ in range(ENOUGH):
            with suppress(psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
                transaction(user, dice)
                if dice.random() < 0.9:
                    user.commit()
            user.rollback()


def transaction(user: psycopg.Connection[object], dice: random.Random) -> None:
    for _ in range(dice.randint(1, 4)):
        key = dice.randint(1, 4)
        act = dice.choice(["update", "update", "insert", "delete", "cold", "savepoint"])
        match act:
            case "update":
                user.execute("UPDATE hot SET n = n + 1 WHERE id <= %s", (key,))
            case "insert":
                user.execute("INSERT INTO hot VALUES (%s, 0) ON CONFLICT DO NOTHING", (key,))
            case "delete":
                user.execute("DELETE FROM hot WHERE id = %s", (key,))
            case "cold":
                user.execute("INSERT INTO cold (n) VALUES (%s)", (key,))
            case _:
                user.execute("SAVEPOINT s")
                user.execute("UPDATE hot SET n = -1 WHERE id = %s", (key,))
                user.execute("ROLLBACK TO SAVEPOINT s")


def test_entries_are_in_an_order_in_which_each_operation_finds_its_row(
    replicated: Callable[..., Replicated],
) -> None:
    """S0-12, S0-13; numbered all the while, by two that meet. Nobody's commit waits for it."""
    sites = replicated(HOT, "public.hot", "public.cold", capture="triggers")
    begun, ended = threading.Barrier(SESSIONS), threading.Event()
    writers = [threading.Thread(target=write, args=(sites, n, begun)) for n in range(SESSIONS)]
    numberers = [threading.Thread(target=number, args=(sites, ended)) for _ in range(2)]
    for each in (*writers, *numberers):
        each.start()
    for each in writers:
        each.join()
    ended.set()
    for each in numberers:
        each.join()

    rows = dict[str, str]()
    for operation, before, after in sites.london.rows(
        "SELECT o.operation::text, o.before, o.after FROM concord.entry e JOIN concord.operation o USING (transaction)"
        " WHERE o.relation = 'hot'::regclass ORDER BY e.number, o.place"
    ):
        key = (before or after).split(",")[0]
        assert rows.pop(key, None) == before, f"{operation} {before} → {after}"
        if after is not None:
            rows[key] = after
    assert sorted(rows.values()) == sorted(
        f"({id_},{n})" for id_, n in sites.london.rows("SELECT * FROM hot")
    )
    [(entries, batches, operations, kept)] = sites.london.rows(
        "SELECT count(*), count(DISTINCT xmin::text), (SELECT count(*) FROM concord.operation),"
        " (SELECT count(*) FROM concord.operation JOIN concord.entry USING (transaction)) FROM concord.entry"
    )
    assert (operations, kept) == (kept, operations)
    assert entries > batches > 10, "numbers were given while users wrote"
    overlaps = "SELECT count(*) FROM concord.entry e JOIN concord.entry f ON f.since >= e.since AND f.since < e.number"
    assert sites.london.value(f"{overlaps} AND e.number <> f.number") == 0


def number(sites: Replicated, ended: threading.Event) -> None:
    """Until users have ended, and once more."""
    with closing(connect(sites.london.credentials(APPLIER))) as connection:
        while not ended.is_set():
            numbering.end(connection)
        numbering.end(connection)
