"""A column added, dropped or altered at one site stops that table only, and no new column is overwritten (F86, F87)."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from concord.databases import provisioning
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.messages.errors import (
    NotInitialized,
    ProvisioningRefused,
    SitesDiffer,
    StructureChanged,
    TablesStopped,
)
from tests.conftest import PROJECT
from tests.given.application_session import sessions, wait_until
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.mapped_pair import installations
from tests.given.site import READER
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

READER_WAITS = f"usename = '{READER}' AND cardinality(pg_blocking_pids(pid)) > 0"

DOCUMENT = PROJECT / "docs" / "schema-changes.md"

TABLES = (
    "CREATE TABLE account (id int PRIMARY KEY, balance int)",
    "CREATE TABLE parent (id int PRIMARY KEY, name text)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)",
    "INSERT INTO account VALUES (1, 10)",
    "INSERT INTO parent VALUES (1, 'one')",
    "INSERT INTO child VALUES (1, 1)",
)


def edit_everything(sites: Pair, number: int) -> None:
    sites.london.run(f"UPDATE account SET balance = {number}", f"INSERT INTO parent (id) VALUES ({number})")
    sites.london.run(f"INSERT INTO child VALUES ({number}, {number})")


CHANGES = {
    "ALTER TABLE parent ADD note text": (
        "(column note text was added)",
        "column note exists at {0} but not at {1}",
    ),
    "ALTER TABLE parent ALTER name TYPE varchar(9)": (
        "(column name was text and is character varying(9))",
        "column name is {types}",
    ),
    "ALTER TABLE parent DROP name": (
        "(column name character varying(9) was dropped)",
        "column name exists at {1} but not at {0}",
    ),
}


@pytest.mark.parametrize("site", ["london", "capetown"])
def test_a_schema_change_stops_its_table_and_those_that_refer_to_it_and_no_other(
    pair: MakePair, site: str
) -> None:
    sites = pair(*TABLES)
    changed = sites.london if site == "london" else sites.capetown
    changes = list(CHANGES.items()) if site == "london" else list(CHANGES.items())[:1]
    unchanged = sites.capetown if site == "london" else sites.london
    other = unchanged.name
    for number, (change, (said, between)) in enumerate(changes, 100):
        changed.run(change)
        edit_everything(sites, number)
        forward, reverse = sites.run(), sites.run("reverse")
        kinds = {site: "character varying(9)", other: "text"}
        types = f"{kinds['capetown']} at capetown and {kinds['london']} at london"
        difference = between.format(site, other, types=types)
        why = (
            f"{site}: public.parent has other columns than when it was provisioned {said}; make it alike at every site,"
            f" or list the columns that are replicated, and run `provision`; public.parent: {difference}"
        )
        for report in (forward, reverse):
            assert report.stopped == {
                "public.parent": why,
                "public.child": "public.child: refers to public.parent, which is stopped",
            }
            assert report.error_code == TablesStopped.code
            assert report.error_message == (
                f"{why}; public.child: refers to public.parent, which is stopped; 1 other tables were carried"
            )
        assert carried(forward, "public.account").applied == 1
        assert sites.capetown.rows("TABLE account") == [(1, number)]
        assert sites.run().total("acquired") == 0  # the position of account has moved, and only that
        unchanged.run(change)
        provisioning.provision(installations(sites.sites, sites.tables))
        sites.settle()
        assert sites.equal
        assert sites.capetown.value("SELECT count(*) FROM child") == number - 98
    assert sites.conflicts() == []


def test_a_column_that_was_dropped_and_added_again_has_lost_what_stood_in_it(pair: MakePair) -> None:
    # Its name and type are as they were: without a look at its place, nobody would see that the sites differ.
    sites = pair(TABLES[0], TABLES[3])
    sites.capetown.run("ALTER TABLE account DROP balance", "ALTER TABLE account ADD balance int")
    with pytest.raises(StructureChanged, match=r"\(column balance integer was dropped and added again\)"):
        sites.run()
    provisioning.provision(installations(sites.sites, sites.tables))
    with pytest.raises(NotInitialized):
        sites.run()
    with pytest.raises(SitesDiffer):
        declare_equal(sites.job())
    assert sites.london.rows("TABLE account") == [(1, 10)]


def test_when_every_table_is_stopped_the_link_is_refused(pair: MakePair) -> None:
    sites = pair(TABLES[0])
    sites.capetown.run("ALTER TABLE account ADD note text")
    with pytest.raises(
        StructureChanged, match=r"column note text was added.*note exists at capetown but not at london"
    ):
        sites.run()


def test_a_new_column_is_not_overwritten_by_rows_that_lack_it(pair: MakePair) -> None:
    """F86: the worked example of the document, while Cape Town, which lacks the column, edits a row."""
    sites = pair(
        "CREATE TABLE account (id int PRIMARY KEY, balance int)",
        "INSERT INTO account VALUES (1, 10), (2, 20)",
    )
    sites.capetown.run("UPDATE account SET balance = 11 WHERE id = 1")
    example = dict(re.findall(r"```sql ([a-z]+)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL))
    sites.london.run(example["london"])
    for direction in ("forward", "reverse"):
        with pytest.raises(StructureChanged):
            sites.run(direction)
    # Rows that nobody edits have 'old' in London: another default at Cape Town would be a difference that no link sees.
    sites.capetown.run("ALTER TABLE account ADD note text")
    with pytest.raises(ProvisioningRefused) as refused:
        provisioning.provision(installations(sites.sites, sites.tables))
    assert refused.value.facts["problems"] == (
        "public.account: column note was added with the default {old} at london and NULL at capetown: rows that nobody"
        " edits would differ for ever; add it alike at both sites",
    )
    sites.capetown.run("ALTER TABLE account DROP note", example["capetown"])
    provisioning.provision(installations(sites.sites, sites.tables))
    sites.settle()
    assert sites.equal
    assert sites.london.rows("TABLE account ORDER BY id") == [(1, 11, "old"), (2, 20, "filled")]
    assert sites.conflicts() == []


def test_an_unlisted_column_that_is_added_stops_nothing_and_to_list_it_later_asks_for_proof(
    pair: MakePair,
) -> None:
    sites = pair(
        "CREATE TABLE account (id int PRIMARY KEY, balance int)", "INSERT INTO account VALUES (1, 10)"
    )
    listed = tuple(table.model_copy(update={"columns": ("id", "balance")}) for table in sites.tables)
    provisioning.provision(installations(sites.sites, listed))
    sites.tables = listed
    sites.london.run("ALTER TABLE account ADD note text", "UPDATE account SET balance = 11, note = 'mine'")
    sites.capetown.run("ALTER TABLE account ADD note text DEFAULT 'theirs'")
    sites.settle()
    assert sites.capetown.rows("TABLE account") == [(1, 11, "theirs")]
    assert sites.london.rows("TABLE account") == [(1, 11, "mine")]
    provisioning.provision(installations(sites.sites, listed))
    sites.tables = tuple(table.model_copy(update={"columns": None}) for table in listed)
    with pytest.raises(StructureChanged, match="other columns than when it was provisioned"):
        sites.run()
    sites.capetown.run("ALTER TABLE account ALTER note DROP DEFAULT")
    provisioning.provision(installations(sites.sites, sites.tables))
    with pytest.raises(NotInitialized):
        sites.run()
    sites.capetown.run("UPDATE account SET note = 'mine'")
    declare_equal(sites.job())
    sites.capetown.run("UPDATE account SET note = 'ours'")
    sites.settle()
    assert sites.london.rows("TABLE account") == [(1, 11, "ours")]


def test_a_table_that_is_rewritten_while_it_is_read_is_not_taken_for_empty(pair: MakePair) -> None:
    """F87: to a snapshot that is older than the rewrite, every row of the table is gone.

    By triggers alone: where the log tells, the link looks at the rows themselves when it counts, and ALTER TABLE waits.
    """
    sites = pair(*TABLES[:2])
    sites.london.run(
        "INSERT INTO account SELECT n, n FROM generate_series(2, 9) n",
        "INSERT INTO parent VALUES (5, 'five')",
    )
    rewrite = At("stage", lambda: sites.london.run("ALTER TABLE account ALTER balance TYPE bigint"))
    report = sites.run(at=rewrite)
    assert report.stopped == {
        "public.account": "london: public.account was altered while it was read; the next run looks anew"
    }
    assert carried(report, "public.parent").applied == 1
    assert sites.capetown.rows("TABLE account") == []
    assert sites.capetown.rows('TABLE concord."public.account"') == []
    sites.capetown.run("ALTER TABLE account ALTER balance TYPE bigint")
    provisioning.provision(installations(sites.sites, sites.tables))
    sites.settle()
    assert sites.equal
    assert sites.capetown.value("SELECT count(*) FROM account") == 8


def test_a_target_that_is_altered_before_the_write_is_left_as_it_is(pair: MakePair) -> None:
    # F87: the fingerprint is looked at again inside the transaction, under the lock that keeps it
    sites = pair(TABLES[0], TABLES[3])
    sites.london.run("UPDATE account SET balance = 70000")
    narrow = At("write", lambda: sites.capetown.run("ALTER TABLE account ALTER balance TYPE smallint"))
    with pytest.raises(StructureChanged) as refused:
        sites.run(at=narrow)
    assert refused.value.message == (
        "capetown: public.account: the columns were altered while rows were on their way; nothing of it was written"
    )
    assert sites.capetown.rows("TABLE account") == [(1, 10)]


def test_a_site_of_an_older_concord_runs_on_and_is_upgraded_in_place(pair: MakePair) -> None:
    sites = pair(TABLES[0], TABLES[3])
    for site in sites.sites:
        site.run("ALTER TABLE concord.replicated_table DROP columns, DROP mapping")
    sites.london.run("UPDATE account SET balance = 11")
    assert sites.run().total("applied") == 1
    provisioning.provision(installations(sites.sites, sites.tables))
    assert (
        sites.london.value("SELECT columns -> 'balance' ->> 'type' FROM concord.replicated_table")
        == "integer"
    )
    assert sites.run().total("acquired") == 0  # still initialized


@pytest.mark.parametrize("change", ["DROP number", "DROP number, ADD number int UNIQUE", "DROP id"])
def test_a_migration_that_commits_while_a_link_reads_the_catalogue_stops_its_table_alone(
    pair: MakePair, change: str
) -> None:
    """The link waits for the migration inside a statement: it sees the indexes of before, and then the columns of
    after."""
    sites = pair(
        "CREATE TABLE migrated (id int PRIMARY KEY, number int UNIQUE, note text)",
        "CREATE TABLE other (id int PRIMARY KEY, note text)",
    )
    sites.london.run("INSERT INTO other VALUES (1, 'new')")
    with sites.london.log_in(sites.london.superuser, autocommit=False) as migration:
        migration.execute(f"ALTER TABLE migrated {change}".encode())
        with ThreadPoolExecutor(1) as pool:
            report = pool.submit(sites.run)
            wait_until(lambda: sessions(sites.london, READER_WAITS))
            migration.commit()
            assert report.result(60).stopped.keys() == {"public.migrated"}
    assert sites.capetown.rows("SELECT * FROM other") == [(1, "new")]
