"""Random edits of the table `item` by its users: inserts, updates, deletes, re-inserts, key changes, in
transactions of one row or several. Every row written carries a token of its own, and a note that follows from
it."""

import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg

from tests.given.site import APPLICATION, Site

KEYS = 150
ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL, note text)",
    "INSERT INTO item SELECT n, 'common ' || n, md5('common ' || n) FROM generate_series(1, 100) n",
)

_INSERT = "INSERT INTO item VALUES (%(key)s, %(token)s, md5(%(token)s)) ON CONFLICT DO NOTHING"
_UPDATE = "UPDATE item SET token = %(token)s, note = md5(%(token)s) WHERE id = %(key)s"
_DELETE = "DELETE FROM item WHERE id = %(key)s"
_REKEY = (
    "UPDATE item SET id = %(other)s, token = %(token)s, note = md5(%(token)s) WHERE id = %(key)s"
    " AND NOT EXISTS (SELECT 1 FROM item WHERE id = %(other)s)"
)
#: The acts of one step of a user, and how often they happen.
_STEPS = {(_INSERT,): 4, (_UPDATE,): 8, (_DELETE,): 3, (_DELETE, _INSERT): 1, (_REKEY,): 1}


def edit(site: Site, transactions: int, seed: str) -> int:
    """So many transactions of one user; how many rows they wrote."""
    chance, written = random.Random(seed), 0
    with site.log_in(APPLICATION) as connection:
        for number in range(transactions):
            with connection.transaction():
                for place in range(chance.choice([1, 1, 1, 2, 6])):
                    written += _step(connection, chance, f"{seed} {number}.{place}")
    return written


def _step(connection: psycopg.Connection[Any], chance: random.Random, token: str) -> int:
    (statements,) = chance.choices(list(_STEPS), list(_STEPS.values()))
    given = {"key": chance.randint(1, KEYS), "other": chance.randint(1, KEYS), "token": token}
    return sum(connection.execute(statement, given).rowcount for statement in statements)


def edit_everywhere(sites: Iterable[Site], transactions: int, seed: str) -> int:
    """One user at every site, all at the same time; how many rows they wrote."""
    chosen = list(sites)
    with ThreadPoolExecutor(len(chosen)) as pool:
        return sum(pool.map(lambda site: edit(site, transactions, f"{seed} {site.name}"), chosen))
