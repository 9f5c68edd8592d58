"""Random histories of edits, interruptions, tables made again, copies of whatever a run names, and kills of these."""

import random
import re
from contextlib import suppress
from functools import partial

import psycopg
import pytest

from concord.messages.errors import HistoryLost
from tests.given.interrupted_capture import BY_LOG, BY_TRIGGERS
from tests.given.killed_process import killed_at
from tests.given.replicated_accounts import ACCOUNTS, Make, accounts
from tests.given.replicated_sites import Replicated

WRITES = (
    "INSERT INTO account (id, balance) SELECT coalesce(max(id), 0) + 1, 1 FROM account",
    "UPDATE account SET balance = balance + 1 WHERE id % 3 = 0",
    "INSERT INTO movement (account, amount) VALUES (1, 5)",
    "DELETE FROM movement WHERE id % 4 = 0",
    "BEGIN; UPDATE account SET owner = 'both' WHERE id = 2; INSERT INTO movement (account) VALUES (2); COMMIT",
    "TRUNCATE account, movement",
)
AGAIN = {"public.account": ACCOUNTS[0], "public.movement": ACCOUNTS[1]}


def lost(sites: Replicated) -> list[str]:
    """The tables that a run asks to copy; none where it ends well."""
    try:
        sites.run()
    except HistoryLost as error:
        return re.findall(r"`tables: \[([^]]*)\]`", error.message)[0].split(", ")  # type: ignore[no-any-return]
    return []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_tables_that_a_run_names_are_copied_and_all_is_equal(
    replicated: Make, capture: str, seed: int
) -> None:
    chance = random.Random(seed)
    sites = accounts(replicated, capture=capture)
    kinds = list((BY_LOG if capture == "log" else BY_TRIGGERS).values())
    copied = 0
    for number in range(30):
        step = chance.choice(["write", "write", "write", "interrupt", "made again", "run"])
        step = "run" if number % 6 == 5 else step
        if step == "write":
            sites.london.run(*chance.choices(WRITES, k=3))
        elif step == "interrupt":
            begun, ended = chance.choice(kinds)
            for statement in (begun, chance.choice(WRITES), ended):
                with suppress(psycopg.errors.UndefinedObject):  # it is out already
                    sites.london.run(*filter(None, [statement]))
        elif step == "made again":
            name = chance.choice([*AGAIN])
            sites.london.run(f"DROP TABLE {name}", AGAIN[name])
        else:
            sites.provision()
            while tables := lost(sites):
                sites.london.run(*chance.choices(WRITES, k=2))
                how = {"initialize": True, "replace": True, "copied": frozenset(tables)}
                if chance.random() < 0.3:
                    killed_at(chance.choice(["stage", "replay", "copy"]), partial(sites.run, **how))
                sites.run(**how)
                copied += 1
            assert sites.are_equal(), "a run ended well and left a row out"
    assert copied
