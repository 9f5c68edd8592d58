"""Column lists and mappings between two real sites: every kind both ways, conflicts, refusals (S0-06, S1-34)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from embedded.postgres import Server
from tests.conftest import Database
from tests.link.conftest import site_on
from tests.link.mapped import begin_mapped, configured
from tests.link.pair import Pair

pytestmark = pytest.mark.spark

ENTRY = """
- table: public.account
  at: {capetown: public.konto}
  columns: [id, iban, first, last, tail_number, status, balance]
  mappings:
    capetown:
      rename: {balance: saldo}
      cast: {tail_number: {canonical: integer, here: text}}
      split: {iban: {into: [bank_code, number], lengths: [4, 6]}}
      combine: {full_name: {columns: [first, last], separator: " "}}
      values: {status: {map: {A: active, I: inactive}, into: state}}
      constant: {region: ZA}
"""
LONDON = """
CREATE TABLE account (id int PRIMARY KEY, iban text, first text, last text, tail_number int, status text,
                      balance numeric(12,2), note text NOT NULL DEFAULT 'london')
"""
CAPETOWN = """
CREATE TYPE state AS ENUM ('active', 'inactive');
CREATE TABLE konto (id int PRIMARY KEY, bank_code varchar(4), number varchar(6), full_name text, tail_number text,
                    state state, saldo numeric(12,2), region text NOT NULL, branch int DEFAULT 7)
"""
MakeUnlike = Callable[..., Pair]


@pytest.fixture
def unlike(
    request: pytest.FixtureRequest,
    server_with_logins: Server,
    database: Callable[[], Database],
    tmp_path: Path,
) -> Iterator[MakeUnlike]:
    """Call it with the table entry and each site's own statements."""
    made: list[Pair] = []

    def make(entries: str, london_ddl: str, capetown_ddl: str) -> Pair:
        london, capetown = (
            site_on(server_with_logins, name, database().name) for name in ("london", "capetown")
        )
        london.run(london_ddl)
        capetown.run(capetown_ddl)
        tables = configured(entries, tmp_path)
        made.append(begin_mapped(london, capetown, tables, lambda: request.getfixturevalue("spark")))
        return made[-1]

    yield make
    for each in made:
        for site in each.sites:
            site.connection.close()


def test_every_kind_of_mapping_both_ways(unlike: MakeUnlike) -> None:
    sites = unlike(ENTRY, LONDON, CAPETOWN)
    sites.london.run(
        "INSERT INTO account VALUES (1, 'BANK123456', 'Ada', 'Lovelace', 4711, 'A', 1.50),"
        " (2, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    sites.capetown.run(
        "INSERT INTO konto VALUES (3, 'KONT', '000042', 'Grace Hopper', '-7', 'inactive', 2.00, 'ZA')"
    )
    sites.settle()
    assert sites.capetown.rows("TABLE konto ORDER BY id")[0] == (
        *(1, "BANK", "123456", "Ada Lovelace", "4711", "active"),
        *(sites.london.value("SELECT balance FROM account WHERE id = 1"), "ZA", 7),
    )
    assert sites.london.rows(
        "SELECT iban, first, last, tail_number, status, balance::text, note FROM account WHERE id = 3"
    ) == [("KONT000042", "Grace", "Hopper", -7, "I", "2.00", "london")]
    assert sites.equal
    assert sites.conflicts() == []
