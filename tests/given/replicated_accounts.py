"""Accounts and their movements, which Cape Town replays from London's log."""

from collections.abc import Callable

from tests.given.replicated_sites import Replicated

ACCOUNTS = (
    "CREATE TABLE account (id int PRIMARY KEY, owner text, balance numeric)",
    "CREATE TABLE movement (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account int, amount numeric,"
    " note text)",
)
Make = Callable[..., Replicated]


def accounts(replicated: Make, **settings: object) -> Replicated:
    """Ten of them at both sites, initialized."""
    made = replicated(ACCOUNTS, "public.account", "public.movement", **settings)
    made.london.run("INSERT INTO account SELECT n, 'owner ' || n, 100 FROM generate_series(1, 10) n")
    made.initialize()
    return made
