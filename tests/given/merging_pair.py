"""A pair whose table merges, and what became of its rows."""

import time
from dataclasses import replace

from concord.rules.policy import Policy
from tests.given import version_account
from tests.given.site import Rows, provision_site
from tests.given.two_sites import Pair

STOCK = (
    "CREATE TABLE stock (id int PRIMARY KEY, seats int, price numeric(8,2), title text, seen timestamptz, data bytea)",
    "INSERT INTO stock SELECT n, 100, 10.00, 'old', '2026-01-02 03:04:05.678901+00', '\\x00ff'"
    " FROM generate_series(1, 20) n",
    "CREATE TABLE plain (id int PRIMARY KEY, v text)",
    "INSERT INTO plain VALUES (1, 'old')",
)


def merging(pair: Pair, *resolvers: str) -> Pair:
    """The pair with these resolvers for `stock`; both sites are brought up to what they need."""
    policy = Policy(resolvers=resolvers)
    tables = tuple(
        table.model_copy(update={"policy": policy}) if table.name == "public.stock" else table
        for table in pair.tables
    )
    for site in pair.sites:
        provision_site(site, tables)
    return replace(pair, tables=tables)


def edit(pair: Pair, key: int, london: str, capetown: str) -> None:
    """Both sites edit one row; Cape Town later."""
    for site, change in zip(pair.sites, (london, capetown), strict=True):
        site.run(f"UPDATE stock SET {change} WHERE id = {key}")
        time.sleep(0.002)


def stock(pair: Pair, columns: str = "seats, price::text, title", where: str = "true") -> Rows:
    """The rows, the same at both sites."""
    assert pair.equal
    return pair.london.rows(f"SELECT id, {columns} FROM stock WHERE {where} ORDER BY id")


def losers(pair: Pair, key: int) -> dict[str, dict[str, str | None]]:
    """Of one row's conflict: who lost, with which row; checks what both entries have in common."""
    found = [each for each in pair.conflicts() if each["key"] == [str(key)]]
    for each in found:
        winner, loser = (
            version_account.version(each["winner_version"]),
            version_account.version(each["loser_version"]),
        )
        assert winner.includes(loser)
        assert not loser.includes(winner)
        assert (winner.derived, each["winner_site"]) == (1, winner.site)
    assert len({str(each["winner_row"]) for each in found}) == 1
    return {each["loser_site"]: each["loser_row"] for each in found}
