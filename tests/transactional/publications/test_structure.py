"""A table's structure, constraints and triggers are each site's own, and a missing one is told in one line."""

import pytest

from concord.databases import provisioning
from concord.messages.errors import ConcordError, ProvisioningRefused, StructureChanged
from tests.given.replicated_accounts import Make, accounts
from tests.given.replicated_sites import Replicated


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return accounts(replicated)


def test_no_statement_about_structure_travels_and_a_run_says_where_both_sites_differ(
    sites: Replicated,
) -> None:
    """S4-128, S4-129, S4-133: the docs decide it so; both sites are changed by hand, and then provisioned."""
    sites.london.run(
        "ALTER TABLE account ADD CONSTRAINT rich CHECK (balance > 0)",
        "ALTER TABLE movement ADD FOREIGN KEY (account) REFERENCES account",
        "CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$",
        "CREATE TRIGGER quiet BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION quiet()",
        "UPDATE account SET balance = 1",
    )
    assert sites.run().entries == 1
    assert sites.are_equal()
    constraints = "SELECT count(*) FROM pg_constraint WHERE contype IN ('c', 'f') AND conrelid IN {0}"
    triggers = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN {0}"
    for query in (constraints, triggers):
        assert sites.capetown.value(query.format("('account'::regclass, 'movement'::regclass)")) == 0

    sites.london.run("ALTER TABLE account ADD COLUMN city text")
    with pytest.raises(StructureChanged, match=r"public\.account.*column"):
        sites.run()
    sites.capetown.run("ALTER TABLE account ADD COLUMN city text")
    sites.provision()
    sites.london.run("UPDATE account SET city = 'here' WHERE id = 1")
    assert (sites.run().entries, sites.are_equal()) == (1, True)


def test_a_table_without_a_key_or_that_is_missing_and_a_login_that_is_unknown_are_named(
    sites: Replicated,
) -> None:
    """S4-037, S4-172: each in one line, by `provision` and by the run."""
    with pytest.raises(ConcordError, match="nobody"):
        sites.run(log_reader=sites.london.credentials("nobody"))
    for done, said in (
        ("ALTER TABLE account DROP CONSTRAINT account_pkey", "account has no primary key; name its `key`"),
        ("DROP TABLE account", r"account does not exist"),
    ):
        sites.capetown.run(done)
        with pytest.raises(ProvisioningRefused, match=f"capetown: public.{said}") as refused:
            provisioning.provision(sites.installations())
        assert len(refused.value.message.splitlines()) == 2, "a heading, and one line"
        with pytest.raises(StructureChanged, match=f"capetown: public.{said}"):
            sites.initialize(replace=True)


def test_what_was_written_before_a_column_was_added_is_replayed_without_it(sites: Replicated) -> None:
    """It was refused, and asked for a copy of all tables."""
    sites.london.run("UPDATE account SET balance = 1")
    for site in sites.sites:
        site.run("ALTER TABLE account ADD COLUMN city text DEFAULT 'here'")
    sites.provision()
    assert (sites.run().entries, sites.are_equal()) == (1, True)


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE"])
def test_a_rule_that_would_leave_out_operations_is_named(sites: Replicated, operation: str) -> None:
    """One that was made since `provision`, which refuses it, and that fires for replayed operations."""
    sites.capetown.run(
        f"CREATE RULE quiet AS ON {operation} TO account DO INSTEAD NOTHING",
        "ALTER TABLE account ENABLE ALWAYS RULE quiet",
    )
    sites.london.run(
        "INSERT INTO account VALUES (11, 'new', 1)",
        "UPDATE account SET balance = 1",
        "DELETE FROM account WHERE id = 2",
    )
    with pytest.raises(StructureChanged, match=r"capetown: public\.account has the rule quiet.*drop it"):
        sites.run()
    sites.capetown.run("DROP RULE quiet ON account")
    assert (sites.run().entries, sites.are_equal()) == (3, True)


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_what_was_written_before_a_column_got_another_type_is_refused_and_never_read_as_that_type(
    replicated: Make, capture: str
) -> None:
    """A local time would be read as one of another zone, hours apart; of a copy made anew nothing is guessed."""
    sites = replicated(
        ("CREATE TABLE call (id int PRIMARY KEY, at timestamp)", "CREATE TABLE other (id int PRIMARY KEY)"),
        "public.call",
        capture=capture,
    )
    sites.initialize()
    sites.london.run("INSERT INTO call VALUES (1, '2026-01-01 00:00')")
    for site in sites.sites:
        site.run("ALTER TABLE call ALTER at TYPE timestamptz USING at AT TIME ZONE 'Africa/Johannesburg'")
    sites.provision()
    refused = {
        "log": "call.at is of another type than at london.*from before the publisher's table was altered wait",
        "triggers": "run `provision`, and initialize the replication again",
    }
    with pytest.raises(StructureChanged, match=refused[capture]):
        sites.run()
    assert sites.capetown.value("SELECT count(*) FROM call") == 0
    sites.initialize(replace=True)
    sites.london.run("INSERT INTO call VALUES (2, '2026-01-02 00:00+02')")
    assert (sites.run().entries, sites.are_equal()) == (1, True)
