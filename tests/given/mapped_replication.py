"""A replication whose subscriber keeps one table differently, with a mapping of every kind, and another one alike."""

from collections.abc import Callable, Sequence

from concord.tables.manipulation import (
    AnyOperation,
    Cast,
    Combine,
    Constant,
    Cut,
    Manipulation,
    Rename,
    Split,
    Values,
)
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.replicated_sites import Replicated
from tests.given.site import Rows

ACCOUNT = (
    "CREATE TABLE account (id int PRIMARY KEY, iban text, first text, last text, tail int, status text, active bool,"
    " balance numeric(12,2), note text)"
)
SEAT = "CREATE TABLE seat (id int PRIMARY KEY, account int, note text)"
KONTO = """
CREATE TYPE state AS ENUM ('active', 'inactive');
CREATE TABLE account (id int PRIMARY KEY, bank varchar(4), number varchar(6), full_name text, tail text, state state,
                      open text, saldo numeric(12,2), note text, region text, branch int DEFAULT 7)
"""
OPERATIONS: tuple[AnyOperation, ...] = (
    Rename(canonical=("balance",), own=("saldo",)),
    Cast(canonical=("tail",), own=("tail",), canonical_type="integer", own_type="text"),
    Split(canonical=("iban",), own=("bank", "number"), cut=Cut(parts=2, lengths=(4, 6))),
    Combine(canonical=("first", "last"), own=("full_name",), cut=Cut(parts=2, separator=" ")),
    Values(canonical=("status",), own=("state",), words={"A": "active", "I": "inactive"}),
    Values(canonical=("active",), own=("open",), words={"true": "yes", "false": "no"}),
    Constant(canonical=(), own=("region",), value="ZA"),
)
#: Cape Town's account as the mapping makes it of London's.
EXPECTED = """
SELECT id, substr(iban, 1, 4), substr(iban, 5), first || ' ' || last, tail::text,
       CASE status WHEN 'A' THEN 'active' WHEN 'I' THEN 'inactive' END, CASE WHEN active THEN 'yes' ELSE 'no' END,
       balance, note, 'ZA' FROM account ORDER BY id
"""
KEPT = """
SELECT id, bank, number, full_name, tail, state::text, open, saldo, note, region FROM account ORDER BY id
"""


def mapped_table(operations: Sequence[AnyOperation] = OPERATIONS, name: str = "account") -> ReplicatedTable:
    """Cape Town keeps it so."""
    kept = Manipulation(operations=tuple(operations))
    return ReplicatedTable(table=parse_table_name(f"public.{name}"), manipulations={"capetown": kept})


def begin_mapped(
    replicated: Callable[..., Replicated],
    london: str = ACCOUNT,
    capetown: str = KONTO,
    table: ReplicatedTable | None = None,
    **settings: object,
) -> Replicated:
    """Provisioned, not yet initialized; the table `seat` is the same at both sites."""
    own = {"london": [london], "capetown": list(filter(None, map(str.strip, capetown.split(";"))))}
    ddl = {site: (SEAT, *statements) for site, statements in own.items()}
    return replicated(ddl, table or mapped_table(), "public.seat", **settings)


def account(key: int, **changed: str) -> str:
    """The statement that makes an account at London."""
    values = {
        "id": str(key),
        "iban": "'BANK123456'",
        "first": "'Ada'",
        "last": "'Lovelace'",
        "tail": "4711",
        "status": "'A'",
        "active": "true",
        "balance": "1.50",
    }
    values |= changed
    return f"INSERT INTO account ({', '.join(values)}) VALUES ({', '.join(values.values())})"


def kept(sites: Replicated) -> Rows:
    """Cape Town's accounts."""
    return sites.capetown.rows(KEPT)


def expected(sites: Replicated) -> Rows:
    """Cape Town's accounts as London's make them, by a form of the mapping in SQL."""
    return sites.london.rows(EXPECTED)
