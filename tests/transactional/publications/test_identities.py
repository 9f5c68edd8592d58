"""A replica identity that somebody made FULL: one answer of `provision`, `provision --check` and runs."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from concord.databases import provisioning
from concord.messages.errors import ProvisioningRefused, StructureChanged
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]
NOTE = (
    "CREATE TABLE note (id int PRIMARY KEY, said text, secret text)",
    "INSERT INTO note VALUES (1, 'old')",
)
FULL = "ALTER TABLE note REPLICA IDENTITY FULL"
REFUSED = (
    r"london: public\.note: its replica identity is FULL, .*; say ALTER TABLE … REPLICA IDENTITY DEFAULT"
)
UPDATE = "UPDATE note SET said = said || '!'"

NEEDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "compare": ({}, {"conversions": "compare"}),
    "filter": ({"where": "said <> ''"}, {}),
    "both": ({}, {"updates": "both"}),
}


def table(**chosen: Any) -> ReplicatedTable:
    return ReplicatedTable(table=parse_table_name("public.note"), **chosen)


def checked(sites: Replicated) -> list[str]:
    return [line for line in provisioning.check(sites.installations()) if "IDENTITY" in line]


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return replicated(NOTE, "public.note")


@pytest.mark.parametrize("again", [False, True], ids=["before it is published", "once it is published"])
def test_one_that_makes_users_updates_fail_is_refused_by_all_of_them(replicated: Make, again: bool) -> None:
    """`columns` chooses some, and the publication lists these."""
    sites = replicated((*NOTE, "CREATE TABLE other (id int PRIMARY KEY)"), "public.other")
    sites.tables = (table(columns=("id", "said")),)
    if again:
        sites.provision()
        sites.initialize(replace=True)
    sites.london.run(FULL)
    with pytest.raises(ProvisioningRefused, match=REFUSED):
        sites.provision()
    (line,) = checked(sites)
    assert line in _refusal(sites)
    if again:
        with pytest.raises(psycopg.Error, match=r"REPLICA IDENTITY|replica identity"):
            sites.london.run(UPDATE)
        with pytest.raises(StructureChanged, match=REFUSED):
            sites.run()
    sites.london.run("ALTER TABLE note REPLICA IDENTITY DEFAULT")
    sites.provision()
    assert checked(sites) == []
    sites.initialize(replace=True)
    sites.london.run(UPDATE)
    sites.run()
    assert sites.are_equal()


@pytest.mark.parametrize("again", [False, True], ids=["before it is published", "once it is published"])
def test_one_that_hinders_nobody_is_left_as_it_is(replicated: Make, again: bool) -> None:
    """Another reader of the log may need it."""
    sites = replicated((*NOTE, "CREATE TABLE other (id int PRIMARY KEY)"), "public.other")
    sites.tables = (table(),)
    if again:
        sites.provision()
    sites.london.run(FULL)
    sites.provision()
    sites.tables = (table(), ReplicatedTable(table=parse_table_name("public.other")))
    sites.provision()
    assert checked(sites) == []
    assert sites.london.value("SELECT relreplident = 'f' FROM pg_class WHERE relname = 'note'")
    sites.initialize(replace=True)
    sites.london.run(
        UPDATE, "UPDATE note SET id = 7", "DELETE FROM note", "INSERT INTO note VALUES (2, 'new')"
    )
    sites.run()
    assert sites.are_equal()


def _refusal(sites: Replicated) -> str:
    with pytest.raises(ProvisioningRefused) as refused:
        sites.provision()
    return refused.value.message


@pytest.mark.parametrize("again", [False, True], ids=["before it is published", "once it is published"])
@pytest.mark.parametrize("need", NEEDS)
def test_one_that_is_needed_is_taken_and_stays(replicated: Make, need: str, again: bool) -> None:
    chosen, settings = NEEDS[need]
    sites = replicated(NOTE, "public.note")
    sites.tables, sites.settings = (table(**chosen),), settings
    if again:
        sites.provision()
    sites.london.run(FULL)
    sites.provision()
    assert checked(sites) == []
    if need == "both":
        sites.initialize_both_ways(replace=True)
    else:
        sites.initialize(replace=True)
    sites.london.run(UPDATE)
    assert sites.run().entries == 1
    assert sites.are_equal()


def test_one_of_concords_own_goes_with_the_filter_and_stays_after_a_comparison(sites: Replicated) -> None:
    """A table that Concord made FULL for a comparison is published without a list of columns: users' updates go on.

    The identity that came with a filter goes with it.
    """
    sites.settings = {"conversions": "compare"}
    sites.provision()
    sites.initialize(replace=True)
    sites.settings = {}
    sites.provision()
    assert checked(sites) == []
    sites.london.run(UPDATE)
    assert sites.run().entries == 1
    sites.tables = (table(where="said <> ''"),)
    sites.provision()
    sites.tables = (table(),)
    sites.provision()
    assert sites.london.value("SELECT relreplident = 'd' FROM pg_class WHERE relname = 'note'")
