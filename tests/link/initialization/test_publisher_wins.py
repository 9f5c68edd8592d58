"""Publisher wins, and the subscriber's copy is brought back to the publisher's (S3-21)."""

import re
from dataclasses import replace
from functools import partial

import pytest

from concord.databases.postgresql.ledger import reinitialization
from concord.jobs.initialization import How, InitializationJob, InitializationReport
from concord.rules.policy import Policy
from spark_jobs.initialize import initialize
from spark_jobs.link import transmit
from tests.conftest import PROJECT
from tests.given.at_step import At
from tests.given.fixtures import MakeNetwork, MakePair
from tests.given.killed_driver import killed
from tests.given.many_sites import Network, mesh
from tests.given.strangers import initialization, initialized, unstamped
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

RESOLVER = "publisher_wins_and_reinitialize"
PLACES = {"london": 0, "capetown": -1}
TABLES = (
    "CREATE TABLE book (id int PRIMARY KEY, title text)",
    "INSERT INTO book SELECT n, 'as loaded' FROM generate_series(1, 9) n",
    "CREATE TABLE shelf (id int PRIMARY KEY, name text)",
    "INSERT INTO shelf VALUES (1, 'as loaded')",
)
BLOCK = re.compile(r"```(sql [a-z ]+|text [a-z]+)\n(.*?)```", re.DOTALL)
BOOK = ("london_capetown", "public.book")


def published(sites: Pair, *before: str) -> Pair:
    policy = Policy(resolvers=(*before, RESOLVER), places=PLACES)
    return replace(sites, tables=tuple(each.model_copy(update={"policy": policy}) for each in sites.tables))


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return published(pair(*TABLES))


def edit_at_both(sites: Pair, key: int) -> None:
    for site in sites.sites:
        site.run(f"UPDATE book SET title = '{site.name}' WHERE id = {key}")


def asked(sites: Pair) -> dict[str, list[tuple[str, str]]]:
    return {
        site.name: [(each.synchronization, each.table) for each in reinitialization.asked(site.access)]
        for site in sites.sites
    }


def brought_back(sites: Pair) -> InitializationReport:
    tables = {table for found in asked(sites).values() for _, table in found}
    return initialized(sites, "reinitialize", named="london", chosen=tuple(sorted(tables)))


def resolvers(sites: Pair) -> list[str]:
    return [each["resolver"] for each in sites.conflicts()]


def test_the_site_where_the_conflict_was_decided_remembers_which_table_is_to_be_brought_back(
    sites: Pair,
) -> None:
    """S3-19, S3-21: by the forward link in Spark, and by the reverse one under lock; so say ledger and report."""
    sites.london.run("UPDATE shelf SET name = 'no conflict'")
    edit_at_both(sites, 1)
    report = carried(sites.run("forward"), "public.book")
    assert (report.conflicts, report.reinitializing, report.applied) == (1, 1, 1)
    assert asked(sites) == {"london": [], "capetown": [BOOK]}
    sites.run("reverse")
    assert resolvers(sites) == [RESOLVER]
    sites.capetown.run("UPDATE book SET title = 'capetown' WHERE id = 3")
    late = At("lock", lambda: sites.london.run("UPDATE book SET title = 'london' WHERE id = 3"))
    assert carried(sites.run("reverse", at=late), "public.book").reinitializing == 1
    assert asked(sites) == {"london": [BOOK], "capetown": [BOOK]}
    sites.run("forward")
    assert sites.equal
    assert resolvers(sites) == [RESOLVER] * 2
    assert sites.capetown.rows("SELECT title FROM book WHERE id IN (1, 3)") == [("london",)] * 2


def test_the_example_of_the_document_ends_as_it_says_and_the_runs_after_it_are_quiet(pair: MakePair) -> None:
    """Rows that capture has missed are brought back; unsent edits live unless the publisher edited, too."""
    text = (PROJECT / "docs" / "conflicts.md").read_text().partition("\n## Publisher wins, and")[2]
    said = dict(BLOCK.findall(text.partition("\n## ")[0]))
    sites = published(pair(said["sql both"]))
    sites.london.run(said["sql london"])
    sites.capetown.run(said["sql capetown"])
    unstamped(sites.capetown, said["sql capetown unseen"])
    sites.run("forward")
    sites.run("reverse")
    sites.london.run(said["sql london later"])
    sites.capetown.run(said["sql capetown later"])

    (book,) = brought_back(sites).tables

    assert (book.table, book.how) == ("public.book", How.REINITIALIZE)
    held = [f"{number} {title}" for number, title in sites.london.rows("TABLE book ORDER BY id")]
    assert held == said["text held"].splitlines()
    logged = [f"{each['key'][0]} {each['resolver']}: {each['reason']}" for each in sites.conflicts()]
    assert sorted(logged) == said["text ledger"].splitlines()
    assert asked(sites) == {"london": [], "capetown": []}, "its own decisions ask for nothing"
    later = sites.settle()
    assert not any(table.reinitializing for each in later for table in each.tables)
    assert [each.total("acquired") for each in later[2:]] == [0, 0]
    assert sites.equal
    assert asked(sites) == {"london": [], "capetown": []}
    assert len(sites.conflicts()) == len(logged)


def test_a_request_outlives_whatever_dies_after_the_defeat_and_ends_with_the_initialization_alone(
    sites: Pair,
) -> None:
    edit_at_both(sites, 1)
    for step, there in (("commit", []), ("remember", [BOOK])):
        killed(sites, partial(transmit, sites.job(), sites.spark), step, 1)
        assert asked(sites)["capetown"] == there
        assert len(sites.capetown.conflicts()) == len(there)
    job = initialization(sites, "reinitialize", named="london", chosen=("public.book",), chunk_rows=4)
    killed(sites, partial(initialize, job, sites.spark), "chunk", 1)
    assert asked(sites) == {"london": [BOOK], "capetown": [BOOK]}, "its progress stands for it"
    brought_back(sites)
    assert asked(sites) == {"london": [], "capetown": []}


def test_what_another_resolver_of_the_chain_decides_asks_for_nothing(pair: MakePair) -> None:
    sites = published(
        pair("CREATE TABLE book (id int PRIMARY KEY, copies int)", "INSERT INTO book VALUES (1, 1)"),
        "maximum(copies)",
    )
    sites.london.run("UPDATE book SET copies = 2")
    sites.capetown.run("UPDATE book SET copies = 3")
    report = carried(sites.run("forward"), "public.book")
    assert (report.conflicts, report.reinitializing) == (1, 0)
    assert resolvers(sites) == ["maximum(copies)"]
    assert asked(sites) == {"london": [], "capetown": []}


def test_two_deletes_agree_and_ask_for_nothing(sites: Pair) -> None:
    for site in sites.sites:
        site.run("DELETE FROM book WHERE id = 1")
    assert carried(sites.run("forward"), "public.book").reinitializing == 0
    assert asked(sites) == {"london": [], "capetown": []}
    assert sites.conflicts() == []


def test_a_child_that_came_with_its_parent_while_no_link_ran_is_brought_back_without_it(
    pair: MakePair,
) -> None:
    """The parent stands at the other site, in a table that is not brought back: the first run brings it."""
    sites = published(
        pair(
            "CREATE TABLE shelf (id int PRIMARY KEY, name text)",
            "CREATE TABLE book (id int PRIMARY KEY, title text, shelf int REFERENCES shelf)",
            "INSERT INTO book VALUES (1, 'as loaded', NULL)",
        )
    )
    sites.london.run("INSERT INTO shelf VALUES (7, 'new')", "INSERT INTO book VALUES (2, 'new', 7)")
    initialized(sites, "reinitialize", named="london", chosen=("public.book",))
    assert sites.capetown.value("SELECT shelf FROM book WHERE id = 2") == 7
    sites.run("forward")
    assert sites.equal
    assert sites.capetown.value("SELECT name FROM shelf") == "new"


def test_three_sites_that_share_the_table_come_to_rest_whichever_copies_are_brought_back(
    network: MakeNetwork,
) -> None:
    """Each pair brings back its own target; what one has brought back is news to the others, and no conflict."""
    sites = network(mesh("london", "capetown", "oslo"), *TABLES[:2])
    policy = Policy(resolvers=(RESOLVER,), places={"london": 0, "capetown": -1, "oslo": -2})
    sites = replace(sites, tables=tuple(each.model_copy(update={"policy": policy}) for each in sites.tables))
    for number, site in enumerate(sites.sites, 1):
        site.run(f"UPDATE book SET title = '{site.name}' WHERE id IN (1, {number + 1})")
        unstamped(site, f"UPDATE book SET title = 'unseen at {site.name}' WHERE id = {number + 5}")
    made = [pair for pair in sites.topology.pairs if round_of(sites, *pair)]
    assert len(made) >= 2, "London's edit beats each of the others'"
    sites.settle()
    found = [site.rows("TABLE book ORDER BY id") for site in sites.sites]
    assert found[0] == found[1] == found[2]
    assert found[0][:4] == [(1, "london"), (2, "london"), (3, "capetown"), (4, "oslo")]
    assert not any(reinitialization.asked(site.access) for site in sites.sites)


def round_of(sites: Network, source: str, target: str) -> bool:
    """A run of both links, and what it asks for; was anything asked?"""
    sites.run(source, target)
    sites.run(target, source)
    job, named = sites.job(source, target), (f"{source}_{target}", "public.book")
    asked_there = [each for site in (source, target) for each in reinitialization.asked(sites[site].access)]
    if named not in [(each.synchronization, each.table) for each in asked_there]:
        return False
    asked_for = InitializationJob(link=job, how=How.REINITIALIZE, named=source)
    initialize(asked_for, sites.spark, lambda step: None)
    return True
