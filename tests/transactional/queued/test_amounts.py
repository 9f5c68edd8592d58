"""A policy that loses changes is no policy for amounts: provision says so, and refuses nothing (S3-34)."""

from concord.databases import provisioning
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

ACCOUNTS = (
    'CREATE TABLE account (id int PRIMARY KEY, amount_id int, balance numeric, "UnitPrices" bigint, price_list text,'
    " size numeric, cost_rate float8, tax numeric GENERATED ALWAYS AS (balance * 0.2) STORED, fees real)",
    "CREATE TABLE person (id int PRIMARY KEY, feet numeric, taxi int, age int)",
)
TABLES = ("public.account", "public.person")


def told(sites: Replicated) -> list[str]:
    """Of amounts, as `provision`, `provision --check` and `status` do."""
    return [line for line in provisioning.notices(sites.installations()) if "amounts" in line]


def test_a_queued_table_whose_numbers_are_called_amounts_has_a_notice(replicated: Make) -> None:
    """S3-34: one line a table, at the publisher; whoever writes one way or by agreement has none."""
    sites = replicated(ACCOUNTS, *TABLES, updates="queued")
    [line] = told(sites)
    assert line.startswith("london: public.account seems to hold amounts (balance, UnitPrices, fees), and ")
    assert "write updates: both, or a synchronization with additive(…)" in line
    assert provisioning.check(sites.installations()) == []
    sites.settings = {"updates": "both"}
    assert told(sites) == []
