"""Accounts of London, and their history at Cape Town."""

from typing import Any

from concord.jobs.kept_history import KeptHistory
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

ACCOUNT = "CREATE TABLE account (id int PRIMARY KEY, owner text NOT NULL, balance numeric)"
HISTORY = (
    "CREATE SCHEMA reports",
    "CREATE TABLE reports.account_history (id int, owner text NOT NULL, balance numeric, version bigint,"
    " operation text, committed_at timestamptz, entry bigint, PRIMARY KEY (id, version))",
)
TABLE = parse_table_name("public.account")
KEPT = {"public.account": KeptHistory()}


def histories(
    replicated: Make, *more: str, history: tuple[str, ...] = HISTORY, **settings: Any
) -> Replicated:
    """London's accounts, and their history at Cape Town; not yet initialized. `more`: the table's other settings."""
    table = settings.pop("table", ReplicatedTable(table=TABLE))
    kept = settings.pop("kept", KEPT)
    table = table.model_copy(update={"at": {"capetown": parse_table_name("reports.account_history")}})
    return replicated((ACCOUNT, *history, *more), table, history=kept, **settings)


def versions(sites: Replicated) -> list[tuple[Any, ...]]:
    """Key, version, operation, owner and balance, in the order of the versions."""
    return sites.capetown.rows(
        "SELECT id, version, operation, owner, balance FROM reports.account_history ORDER BY id, version"
    )
