"""The steps of docs/replication.md for a table whose structure changes, while users write and runs go on."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from concord.databases import provisioning
from concord.messages.errors import HistoryLost, StructureChanged
from tests.given.replicated_accounts import Make, accounts
from tests.given.site import Site


@contextmanager
def busy(site: Site) -> Iterator[list[str]]:
    """Users write the table all the while; what PostgreSQL answered where it refused."""
    ended, refused = threading.Event(), list[str]()

    def write(seed: int) -> None:
        dice = random.Random(seed)
        with site.log_in(site.superuser) as user:
            while not ended.wait(dice.random() * 0.02):
                try:
                    user.execute(
                        "UPDATE account SET balance = balance + 1 WHERE id = %s", (dice.randint(1, 5),)
                    )
                    user.execute(
                        "INSERT INTO account (id, balance) SELECT max(id) + 2, 0 FROM account WHERE id %% 2 = %s",
                        (seed,),
                    )
                except psycopg.Error as error:
                    refused.append(str(error))

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    for each in threads:
        each.start()
    try:
        yield refused
    finally:
        ended.set()
        for each in threads:
            each.join()


def test_each_change_is_followed_while_users_write(replicated: Make) -> None:
    """Nothing is provisioned and nothing copied meanwhile, and no user's statement fails."""
    sites = accounts(replicated)
    london, capetown = sites.london, sites.capetown
    with busy(london) as refused:
        # A column is added: at the subscriber first.
        capetown.run("ALTER TABLE account ADD COLUMN city text DEFAULT 'none'")
        sites.run()
        london.run("ALTER TABLE account ADD COLUMN city text DEFAULT 'none'")
        london.run("UPDATE account SET city = 'x' WHERE id < 4")
        sites.run()
        # One is renamed, and one gets another type: at the publisher first.
        for altered in (
            "ALTER TABLE account RENAME COLUMN city TO town",
            "ALTER TABLE account ALTER COLUMN balance TYPE bigint USING balance * 100",
        ):
            london.run("UPDATE account SET owner = 'before' WHERE id = 5", altered)
            london.run("UPDATE account SET balance = 7 WHERE id = 5")
            with pytest.raises(StructureChanged, match=r"public\.account"):
                sites.run()
            capetown.run(altered)
            sites.run()
        # One is dropped: at the publisher first, and a run passes it.
        london.run("ALTER TABLE account DROP COLUMN owner", "UPDATE account SET town = 'y' WHERE id = 1")
        sites.run()
        capetown.run("ALTER TABLE account DROP COLUMN owner")
        sites.run()
    sites.run()
    assert refused == []
    assert sites.are_equal()
    assert len(sites.rows("account")[0]) > 20, "users wrote"
    assert provisioning.check(sites.installations()) == []


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_altered_both_sites_are_equal_once_the_subscriber_has_followed(
    replicated: Make, seed: int
) -> None:
    """Random histories: where a run stops, the subscriber is altered by one statement more."""
    dice = random.Random(seed)
    sites = accounts(replicated)
    names, waiting, made, copied = ["owner"], list[str](), 0, 0

    def alter() -> None:
        nonlocal made
        made += 1
        kind = dice.choice(["ADD", "ADD", "DROP", "RENAME", "TYPE"]) if names else "ADD"
        name, new = dice.choice(names or [""]), f"column_{made}"
        statement = {
            "ADD": f"ADD {new} text DEFAULT '{made}'",
            "DROP": f"DROP {name}",
            "RENAME": f"RENAME {name} TO {new}",
            "TYPE": f"ALTER {name} TYPE varchar({50 + made}) USING {name} || '{made}'",
        }[kind]
        if kind in ("DROP", "RENAME"):
            names.remove(name)
        if kind in ("ADD", "RENAME"):
            names.append(new)
        waiting.append(f"ALTER TABLE account {statement}")
        sites.london.run(waiting[-1])

    def write() -> None:
        given = "".join(f", {name} = {name} || 'w'" for name in names)
        row = dice.randint(1, 10)
        sites.london.run(f"UPDATE account SET balance = balance + 1{given} WHERE id = {row}")

    def follow() -> None:
        nonlocal copied
        while True:
            try:
                sites.run()
                break
            except StructureChanged:
                sites.capetown.run(waiting.pop(0))
            except HistoryLost:
                sites.capetown.run(*waiting)
                waiting.clear()
                sites.initialize(replace=True)
                copied += 1
        sites.capetown.run(*waiting)
        waiting.clear()

    for _ in range(14):
        dice.choice([alter, alter, write, write, write, follow])()
    follow()
    assert sites.are_equal()
    assert copied < made, "most are followed without a copy"
