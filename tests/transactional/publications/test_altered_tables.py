"""The owner of a published table alters it while users write: the log is read with the columns of each time."""

from contextlib import suppress
from typing import Any

import psycopg
import pytest

from concord.databases import provisioning
from concord.messages.errors import HistoryLost, StructureChanged
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.replicated_accounts import ACCOUNTS, Make
from tests.given.replicated_sites import Replicated

#: Each way in which rows travel.
WAYS: dict[str, dict[str, Any]] = {
    "one way": {},
    "compared": {"conversions": "compare"},
    "both ways": {"updates": "both"},
    "queued": {"updates": "queued"},
}
#: Each alters the table, and a write follows that only then is possible.
ALTERED = {
    "a column is added": (
        "ALTER TABLE account ADD COLUMN city text DEFAULT 'here'",
        "INSERT INTO account VALUES (12, 'after', 1, 'there')",
    ),
    "one is dropped": (
        "ALTER TABLE account DROP COLUMN owner",
        "INSERT INTO account VALUES (12, 1)",
    ),
    "one is renamed": (
        "ALTER TABLE account RENAME COLUMN owner TO holder",
        "INSERT INTO account (id, holder, balance) VALUES (12, 'after', 1)",
    ),
    "the key is renamed": (
        "ALTER TABLE account RENAME COLUMN id TO number",
        "UPDATE account SET balance = 9 WHERE number = 1",
    ),
    "one gets another type": (
        "ALTER TABLE account ALTER COLUMN balance TYPE text USING 'about ' || balance",
        "INSERT INTO account VALUES (12, 'after', 'much')",
    ),
    "one may hold longer values": (
        "ALTER TABLE account ALTER COLUMN owner TYPE varchar(20)",
        "INSERT INTO account VALUES (12, 'twenty characters.', 1)",
    ),
}


@pytest.fixture(params=WAYS)
def sites(replicated: Make, request: pytest.FixtureRequest) -> Replicated:
    return _accounts(replicated, **WAYS[request.param])


def _accounts(replicated: Make, **settings: Any) -> Replicated:
    ddl = (ACCOUNTS[0].replace("owner text", "owner varchar(10)"), ACCOUNTS[1])
    made = replicated(ddl, "public.account", "public.movement", **settings)
    made.london.run("INSERT INTO account SELECT n, 'owner ' || n, 100 FROM generate_series(1, 10) n")
    if made.definition.both_ways:
        made.initialize_both_ways()
    else:
        made.initialize()
    return made


def follow(sites: Replicated, altered: str) -> int:
    """Runs until all is replayed: where one stops at the altered table, the subscriber's is altered in the same way.

    Returns how many transactions were replayed.
    """
    replayed = "SELECT entries FROM concord.replay WHERE level IS NOT NULL"
    before = sites.capetown.value(replayed)
    with suppress(StructureChanged):
        sites.run()
    sites.capetown.run(altered)
    sites.run()
    return int(sites.capetown.value(replayed)) - int(before)


@pytest.mark.parametrize(("altered", "written"), ALTERED.values(), ids=ALTERED)
def test_the_owner_alters_a_table_that_users_write(sites: Replicated, altered: str, written: str) -> None:
    """PostgreSQL refused to drop or retype a listed column; one write before `provision` asked for a copy of all."""
    if sites.definition.queued and "TO number" in altered:
        pytest.skip("capture of versions refuses another key")
    sites.london.run("INSERT INTO account VALUES (11, 'before', 1)")
    try:
        sites.london.run(altered)
    except psycopg.Error as refused:
        pytest.fail(f"the owner's statement was refused: {refused}")
    sites.london.run(written)
    assert follow(sites, altered) == 2
    assert sites.are_equal()
    sites.provision()
    assert provisioning.check(sites.installations()) == []
    sites.london.run(
        "DELETE FROM account WHERE balance IS NOT NULL", "INSERT INTO movement (account) VALUES (1)"
    )
    assert (sites.run().entries, sites.are_equal()) == (2, True)


def test_all_before_an_alteration_that_the_subscriber_lacks_is_replayed(replicated: Make) -> None:
    """So the subscriber is altered at the very place at which the publisher was, and its values are the same."""
    sites = _accounts(replicated)
    sites.london.run(
        "UPDATE account SET balance = 7 WHERE id = 1",
        "ALTER TABLE account ADD COLUMN city text",
        "UPDATE account SET city = 'x' WHERE id = 2",
    )
    for _ in range(2):
        with pytest.raises(
            StructureChanged, match=r"^capetown: public\.account lacks the column city of london; add it"
        ):
            sites.run()
    assert sites.capetown.rows("SELECT balance FROM account WHERE id = 1") == [(7,)]
    sites.capetown.run("ALTER TABLE account ADD COLUMN city text")
    assert (sites.run().entries, sites.are_equal()) == (1, True)


def test_one_run_reads_on_through_several_alterations(replicated: Make) -> None:
    """The subscriber has the columns before."""
    sites = _accounts(replicated)
    for name in ("city", "street"):
        sites.capetown.run(f"ALTER TABLE account ADD COLUMN {name} text")
    for name in ("city", "street"):
        sites.london.run(
            f"UPDATE account SET owner = '{name}' WHERE id = 1",
            "INSERT INTO movement (account) VALUES (1)",
            f"ALTER TABLE account ADD COLUMN {name} text",
            f"UPDATE account SET {name} = 'x' WHERE id = 2",
        )
    report = sites.run()
    assert report.entries == 6
    assert {each.table: (each.inserted, each.updated) for each in report.tables} == {
        "public.account": (0, 4),
        "public.movement": (2, 0),
    }
    assert sites.are_equal()


def test_a_migration_that_alters_a_table_and_then_writes_it_is_one_transaction(replicated: Make) -> None:
    sites = _accounts(replicated)
    sites.capetown.run("ALTER TABLE account ADD COLUMN city text")
    sites.london.run(
        "BEGIN; INSERT INTO movement (account) VALUES (1); ALTER TABLE account ADD COLUMN city text;"
        " UPDATE account SET city = owner; COMMIT",
        "INSERT INTO movement (account) VALUES (2)",
    )
    assert (sites.run().entries, sites.are_equal()) == (2, True)


def test_one_that_writes_the_table_before_and_after_is_refused(replicated: Make) -> None:
    sites = _accounts(replicated)
    sites.london.run(
        "BEGIN; DELETE FROM account WHERE id = 1; ALTER TABLE account ADD COLUMN city text;"
        " UPDATE account SET city = owner; COMMIT"
    )
    sites.capetown.run("ALTER TABLE account ADD COLUMN city text")
    with pytest.raises(
        StructureChanged, match=r"public\.account was altered .* had written it already.*`replace`"
    ):
        sites.run()
    assert sites.capetown.value("SELECT count(*) FROM account") == 10
    sites.initialize(replace=True)
    assert sites.are_equal()


@pytest.mark.parametrize(
    ("altered", "back"),
    [
        ("DROP COLUMN owner", "ADD COLUMN owner varchar(10)"),
        ("RENAME COLUMN owner TO holder", "RENAME COLUMN holder TO owner"),
    ],
)
def test_a_subscriber_that_was_altered_too_early_is_given_its_columns_back(
    replicated: Make, altered: str, back: str
) -> None:
    sites = _accounts(replicated)
    sites.london.run("UPDATE account SET owner = 'new' WHERE id = 1")
    for site in sites.sites:
        site.run(f"ALTER TABLE account {altered}")
    with pytest.raises(
        StructureChanged, match=r"lacks the column owner of london; add it.*until a run has replayed them"
    ):
        sites.run()
    sites.capetown.run(f"ALTER TABLE account {back}")
    if "RENAME" in altered:
        sites.london.run("UPDATE account SET holder = 'newer' WHERE id = 2")
        with pytest.raises(StructureChanged, match="lacks the column holder of london"):
            sites.run()
    else:
        sites.run()
    sites.capetown.run(f"ALTER TABLE account {altered}")
    sites.run()
    assert sites.are_equal()


def test_a_listed_column_is_altered_once_its_table_has_left_the_publication(replicated: Make) -> None:
    """PostgreSQL's own rule, with one command for a way out; columns that are not replicated are the owner's."""
    chosen = ReplicatedTable(table=parse_table_name("public.account"), columns=("id", "owner"))
    sites = replicated(ACCOUNTS, chosen)
    sites.london.run("INSERT INTO account VALUES (1, 'one', 1)")
    sites.initialize()
    sites.london.run("ALTER TABLE account DROP balance", "INSERT INTO account VALUES (2, 'two')")
    assert sites.run().entries == 1
    altered = "ALTER TABLE account ALTER owner TYPE varchar(30)"
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        sites.london.run(altered)
    sites.london.run(f"ALTER PUBLICATION concord_{sites.replication_set} DROP TABLE account")
    for site in sites.sites:
        site.run(altered)
    sites.provision()
    with pytest.raises(HistoryLost, match=r"public\.account"):
        sites.run()
    sites.initialize(replace=True)
    sites.london.run("INSERT INTO account VALUES (3, 'three')")
    assert sites.run().entries == 1
    assert sites.capetown.rows("SELECT id, owner FROM account ORDER BY id") == [
        (1, "one"),
        (2, "two"),
        (3, "three"),
    ]
