"""First load and merge: what two sites hold when they have been brought together (rule 8, S2-14, S4-038)."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import psycopg
import pytest

from concord.jobs.initialization import How
from concord.messages.errors import (
    ConstraintViolated,
    LeaseLost,
    NotInitialized,
    ParametersRefused,
    SitesDiffer,
    StructureChanged,
)
from tests.conftest import PROJECT
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.link_job import next_epoch
from tests.given.own_equality import OWN_EQUALITY
from tests.given.site import Site
from tests.given.strangers import forget, initialized, unstamped
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

BOOK = ("CREATE TABLE book (id int PRIMARY KEY, title text)",)
MANY = "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 1000) n"
VERSIONS = 'SELECT count(*) FROM concord."public.book"'


@pytest.fixture
def strangers(pair: MakePair) -> Pair:
    sites = pair(*BOOK)
    forget(sites)
    return sites


def test_an_empty_site_is_loaded_in_chunks_and_both_links_go_on(strangers: Pair) -> None:
    """S4-038: each chunk is a transaction of its own, as large as it was configured."""
    london, capetown = strangers.sites
    unstamped(london, MANY)
    chunks: list[str] = []
    report = initialized(strangers, chunk_rows=100, progress=chunks.append)
    (book,) = report.tables
    assert (book.how, book.rows, book.written) == (How.LOAD, 1000, {"capetown": 1000})
    assert chunks.count("chunk_commit") == 10
    written = capetown.rows("SELECT count(*) FROM book GROUP BY xmin::text")
    assert written == [(100,)] * 10
    assert strangers.equal
    assert capetown.value(VERSIONS) == 0, "what nobody changed needs no version"
    london.run("UPDATE book SET title = 'new' WHERE id = 1", "DELETE FROM book WHERE id = 2")
    capetown.run("UPDATE book SET title = 'newer' WHERE id = 3", "INSERT INTO book VALUES (0, 'more')")
    reports = strangers.settle()
    assert strangers.equal
    assert strangers.conflicts() == []
    assert [each.total("acquired") for each in reports] == [2, 2, 0, 0]


def test_a_load_that_is_overtaken_before_its_end_starts_no_link(strangers: Pair) -> None:
    """F58: the newer one may have begun anew, and still be at work."""
    unstamped(strangers.london, MANY)
    overtake = f"UPDATE concord.synchronization SET epoch = {next_epoch()}"
    with pytest.raises(LeaseLost):
        initialized(strangers, progress=At("start", lambda: strangers.capetown.run(overtake)))
    started = "SELECT count(*) FROM concord.link_state WHERE initialized <> '{}'"
    assert [site.value(started) for site in strangers.sites] == [0, 0]
    assert strangers.capetown.value("SELECT count(*) FROM concord.initialization") == 1


def test_what_users_do_during_the_load_is_lost_nowhere(strangers: Pair) -> None:
    """F09: rows deleted after they were read do not come back, rows edited at the target are not overwritten."""
    london, capetown = strangers.sites
    unstamped(london, MANY)
    edits = {
        "positions": ["UPDATE book SET title = 'before' WHERE id = 5"],
        "chunk": [
            "DELETE FROM book WHERE id IN (7, 150, 999)",
            "UPDATE book SET title = 'during' WHERE id IN (8, 151)",
        ],
        "chunk_commit": [
            "INSERT INTO book VALUES (2000, 'late'), (-1, 'early')",
            "UPDATE book SET id = 3000 WHERE id = 9",
        ],
        "verify": ["UPDATE book SET title = 'after' WHERE id = 10"],
    }

    def users(step: str) -> None:
        for statement in edits.pop(step, ()):
            london.run(statement)
        if step == "chunk_commit" and capetown.value("SELECT count(*) FROM book") == 100:
            capetown.run(
                "UPDATE book SET title = 'capetown' WHERE id = 20", "INSERT INTO book VALUES (500, 'mine')"
            )

    initialized(strangers, chunk_rows=100, progress=users)
    assert edits == {}
    strangers.settle()
    assert strangers.equal
    titles = dict(capetown.rows("SELECT id, title FROM book"))
    assert not {7, 9, 150, 999} & titles.keys()
    assert [titles[key] for key in (5, 8, 10, 20, 151, 2000, 3000, -1)] == [
        *("before", "during", "after", "capetown", "during", "late", "book 9", "early")
    ]
    assert [each["type"] for each in strangers.conflicts()] == ["insert_insert"], "key 500, inserted at both"


def test_both_sites_populated_are_refused_with_their_counts_unless_a_merge_is_asked_for(
    strangers: Pair,
) -> None:
    london, capetown = strangers.sites
    unstamped(london, "INSERT INTO book VALUES (1, 'a'), (2, 'b')")
    unstamped(capetown, "INSERT INTO book VALUES (2, 'b')")
    with pytest.raises(
        SitesDiffer, match=r"public.book: 2 rows at london, 1 at capetown.*how: merge"
    ) as refused:
        initialized(strangers)
    assert "Nothing was written" in refused.value.message
    with pytest.raises(SitesDiffer, match="capetown holds rows already, and load is for an empty table"):
        initialized(strangers, "load")
    assert london.value("SELECT count(*) FROM concord.initialization") == 0
    initialized(strangers, "merge")
    assert strangers.equal


def test_one_unequal_table_of_two_is_named_to_be_initialized_alone(pair: MakePair) -> None:
    sites = pair(*BOOK, "CREATE TABLE seed (id int PRIMARY KEY, title text)")
    forget(sites)
    for site, seeds in zip(sites.sites, ("(1, 'a'), (2, 'b')", "(1, 'a')"), strict=True):
        unstamped(site, MANY, f"INSERT INTO seed VALUES {seeds}")
    with pytest.raises(SitesDiffer, match=r"for these tables alone \(tables: \[public\.seed\]\)"):
        initialized(sites)
    initialized(sites, "merge", chosen=("public.seed",))
    assert {each.table: each.how for each in initialized(sites).tables} == {"public.book": How.EQUAL}
    sites.settle()
    assert sites.equal


def test_a_site_that_users_have_emptied_is_not_loaded(strangers: Pair) -> None:
    """Its tombstones would take away the very rows that were to be loaded, at the site that has them."""
    london, capetown = strangers.sites
    unstamped(london, MANY)
    unstamped(capetown, "INSERT INTO book VALUES (1, 'old'), (2, 'old')")
    capetown.run("DELETE FROM book")
    for how in ("auto", "load"):
        with pytest.raises(SitesDiffer, match=r"capetown is empty because its users deleted the rows there"):
            initialized(strangers, how)
    assert london.value("SELECT count(*) FROM book") == 1000
    assert capetown.value("SELECT count(*) FROM concord.initialization") == 0


@dataclass(frozen=True)
class State:
    """One key at one site before the merge: what was there, what its users did since Concord came."""

    before: str | None
    edit: str | None = None

    def make(self, site: Site, key: int) -> None:
        if self.before is not None:
            unstamped(site, f"INSERT INTO book VALUES ({key}, '{self.before}')")

    def change(self, site: Site, key: int) -> None:
        if self.edit == "delete":
            site.run(f"DELETE FROM book WHERE id = {key}")
        elif self.edit is not None and self.before is None:
            site.run(f"INSERT INTO book VALUES ({key}, '{self.edit}')")
        elif self.edit is not None:
            site.run(f"UPDATE book SET title = '{self.edit}' WHERE id = {key}")

    @property
    def now(self) -> str | None:
        return self.before if self.edit is None else None if self.edit == "delete" else self.edit


STATES = [
    State(None),
    State("same"),
    State("own"),
    State("same", "edited"),
    State(None, "new"),
    State("own", "delete"),
]
COMBINATIONS = list(product(STATES, STATES))


def expected(one: State, other: State) -> tuple[str | None, bool]:
    """The title at both sites after a merge from London, whose edits are the earlier ones; and is there a loser?"""
    if one.edit is None and other.edit is None:
        held = one.before if one.before is not None else other.before
        return held, None not in (one.before, other.before) and one.before != other.before
    if one.edit is not None and other.edit is not None:
        return other.now, True
    edited, still = (one, other) if one.edit is not None else (other, one)
    return edited.now, still.before is not None and still.before != edited.now


def test_a_merge_of_every_combination_of_rows_matches_the_rule(strangers: Pair) -> None:
    """Only at one side, equal, different, edited, new, deleted: each against each, with the loser in the log."""
    london, capetown = strangers.sites
    for key, (one, other) in enumerate(COMBINATIONS):
        title = f"{key}" if "own" in (one.before, other.before) else ""
        State(one.before and one.before + (" london" if one.before == "own" else title)).make(london, key)
        State(other.before and other.before + (" capetown" if other.before == "own" else title)).make(
            capetown, key
        )
    for key, (one, _) in enumerate(COMBINATIONS):
        one.change(london, key)
    time.sleep(0.002)
    for key, (_, other) in enumerate(COMBINATIONS):
        other.change(capetown, key)
    before = [dict(site.rows("SELECT id, title FROM book")) for site in strangers.sites]

    report = initialized(strangers, "merge", chunk_rows=7)

    assert strangers.equal
    result = dict(london.rows("SELECT id, title FROM book"))
    losers = {int(each["key"][0]) for each in strangers.conflicts()}
    for key, (one, other) in enumerate(COMBINATIONS):
        held = [each.get(key) for each in before]
        kept = held[0] if one.edit is None and other.edit is None and held[0] is not None else None
        if one.edit is not None or other.edit is not None:
            kept = held[1] if other.edit is not None else held[0]
        elif kept is None:
            kept = held[1]
        assert result.get(key) == kept, (key, one, other)
        differs = held[0] != held[1]
        versions = (one.edit is not None) + (other.edit is not None)
        unversioned_lost = (
            versions == 1 and differs and (other if one.edit is not None else one).before is not None
        )
        both_plain = versions == 0 and differs and None not in held
        both_edited = versions == 2 and differs
        assert (key in losers) == (both_edited or unversioned_lost or both_plain), (key, one, other)
    assert report.tables[0].conflicts == len(losers) == len(strangers.conflicts())
    strangers.settle()
    assert strangers.equal
    assert len(strangers.conflicts()) == len(losers)
    assert [each.total("acquired") for each in strangers.settle()] == [0] * 4


def test_rows_that_the_other_site_refuses_are_named_and_nothing_starts(strangers: Pair) -> None:
    london, capetown = strangers.sites
    unstamped(london, "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 60) n")
    capetown.run(
        "ALTER TABLE book ADD CONSTRAINT short CHECK (title NOT IN ('book 7', 'book 31', 'book 32'))"
    )
    with pytest.raises(ConstraintViolated, match="3 rows were refused") as refused:
        initialized(strangers, chunk_rows=25)
    assert "capetown: public.book 31: new row for relation" in refused.value.message
    assert capetown.value("SELECT count(*) FROM book") == 57
    with pytest.raises(NotInitialized):
        strangers.run("forward")
    capetown.run("ALTER TABLE book DROP CONSTRAINT short")
    initialized(strangers, chunk_rows=25)
    assert strangers.equal
    strangers.settle()


def test_an_initialization_stops_at_its_error_cap(strangers: Pair) -> None:
    unstamped(strangers.london, MANY)
    strangers.capetown.run("ALTER TABLE book ADD CONSTRAINT few CHECK (id < 900)")
    with pytest.raises(ConstraintViolated, match=r"stopped after initialize.max_errors \(3\)") as stopped:
        initialized(strangers, chunk_rows=250, max_errors=3)
    assert stopped.value.message.count("\n") == 4


def test_unique_values_that_moved_between_chunks_arrive(pair: MakePair) -> None:
    sites = pair(
        "CREATE TABLE seat (id int PRIMARY KEY, number int UNIQUE)", "INSERT INTO seat VALUES (1, 1), (50, 2)"
    )
    forget(sites)
    unstamped(
        sites.london, "UPDATE seat SET number = 3 - number + 10", "UPDATE seat SET number = number - 10"
    )
    initialized(sites, "merge", chunk_rows=1)
    for site in sites.sites:
        assert site.rows("TABLE seat ORDER BY id") == [(1, 2), (50, 1)]


def test_children_and_parents_come_in_any_order_and_orphans_are_named(pair: MakePair) -> None:
    sites = pair(
        "CREATE TABLE child (id int PRIMARY KEY)",
        "CREATE TABLE parent (id int PRIMARY KEY, boss int REFERENCES parent)",
        "ALTER TABLE child ADD parent int REFERENCES parent",
    )
    forget(sites)
    unstamped(
        sites.london,
        "INSERT INTO parent SELECT n, CASE WHEN n < 20 THEN n + 1 END FROM generate_series(1, 20) n",
        "INSERT INTO child SELECT n, n FROM generate_series(1, 20) n",
    )
    sites.capetown.run("ALTER TABLE parent ADD CONSTRAINT odd CHECK (id <> 13)")
    with pytest.raises(ConstraintViolated, match=r"capetown: public\.parent 13"):
        initialized(sites, chunk_rows=3)
    sites.capetown.run("ALTER TABLE parent DROP CONSTRAINT odd")
    initialized(sites, chunk_rows=3)
    assert sites.equal


def test_children_find_their_parents_by_the_foreign_keys_own_operator_here_and_at_the_other_site(
    pair: MakePair,
) -> None:
    sites = pair(
        *OWN_EQUALITY,
        "CREATE TABLE person (id int PRIMARY KEY, name ext.citext UNIQUE)",
        "CREATE TABLE pet (id int PRIMARY KEY, owner ext.citext REFERENCES person (name))",
    )
    forget(sites)
    unstamped(
        sites.london,
        "INSERT INTO person VALUES (1, 'Ann')",
        "INSERT INTO pet VALUES (1, 'ANN'), (2, 'ann')",
    )
    initialized(sites, chosen=("public.pet",))
    initialized(sites)
    assert sites.equal


def test_one_table_alone_is_initialized_and_the_others_keep_their_place(pair: MakePair) -> None:
    sites = pair(*BOOK, "CREATE TABLE shelf (id int PRIMARY KEY)")
    sites.london.run("INSERT INTO shelf VALUES (1)")
    sites.settle()
    before = sites.london.value("SELECT initialized -> 'public.shelf' FROM concord.link_state LIMIT 1")
    unstamped(sites.london, "INSERT INTO book VALUES (1, 'unseen')")
    sites.london.run("INSERT INTO shelf VALUES (2)")
    report = initialized(sites, "merge", chosen=("public.book",))
    assert [each.table for each in report.tables] == ["public.book"]
    assert sites.capetown.rows("TABLE book") == [(1, "unseen")]
    assert (
        sites.london.value("SELECT initialized -> 'public.shelf' FROM concord.link_state LIMIT 1") == before
    )
    assert sites.run("forward").total("acquired") == 1
    assert sites.equal


def test_text_keys_that_two_sites_sort_differently_are_compared_all_the_same(pair: MakePair) -> None:
    sites = pair('CREATE TABLE word (w text COLLATE "C" PRIMARY KEY, n numeric(6,2))')
    forget(sites)
    sites.capetown.run('ALTER TABLE word ALTER w TYPE text COLLATE "POSIX"')
    for site in sites.sites:
        unstamped(site, "INSERT INTO word SELECT x, 1 FROM unnest('{a,B,c,D,e,F,ä,Z,z,_}'::text[]) x")
    unstamped(sites.london, "UPDATE word SET n = 2 WHERE w IN ('B', 'z')")
    report = initialized(sites, "merge", chunk_rows=3)
    assert sites.equal
    assert report.tables[0].conflicts == 2


def test_words_that_mean_nothing_are_refused(strangers: Pair) -> None:
    unstamped(strangers.london, "INSERT INTO book VALUES (1, 'a')")
    with pytest.raises(ParametersRefused, match="say which of them holds what is right"):
        initialized(strangers, "reinitialize")


def test_the_example_of_the_document_is_true(strangers: Pair) -> None:
    document = (PROJECT / "docs" / "initialization.md").read_text()
    block = dict(re.findall(r"```(?:sql|text) (\w+)\n(.*?)```", document, re.DOTALL))
    for site in strangers.sites:
        create, insert = block[site.name].strip().split("\n")
        assert create == f"{BOOK[0]};"
        unstamped(site, insert)
    with pytest.raises(SitesDiffer, match=re.escape(block["refused"].strip())):
        initialized(strangers)
    initialized(strangers, "merge", named="london")
    for site in strangers.sites:
        assert (
            "".join(f"{key} {title}\n" for key, title in site.rows("TABLE book ORDER BY id"))
            == block["merged"]
        )
    assert [each["loser_row"]["title"] for each in strangers.capetown.conflicts()] == ["The Watsons"]


def test_a_table_that_is_rewritten_while_it_is_loaded_is_not_taken_for_empty(strangers: Pair) -> None:
    """F87: a reader that had to wait for the rewrite sees a table without rows."""
    london, capetown = strangers.sites
    unstamped(london, MANY)
    with (
        london.log_in(london.superuser, autocommit=False) as owner,
        ThreadPoolExecutor(1) as pool,
    ):

        def rewrite() -> None:
            owner.execute("ALTER TABLE book ALTER title TYPE text USING title || ''")
            pool.submit(_commit_when_somebody_waits, owner)

        with pytest.raises(StructureChanged) as refused:
            initialized(strangers, progress=At("stage", rewrite))
    assert refused.value.message == (
        "london: public.book was altered while it was read; the next run looks anew. What stands already stays;"
        " initialize again"
    )
    assert capetown.value("SELECT count(*) FROM book") == 0
    with pytest.raises(NotInitialized):
        strangers.run("forward")
    initialized(strangers)
    strangers.settle()
    assert strangers.equal
    assert capetown.value("SELECT count(*) FROM book") == 1000


def _commit_when_somebody_waits(owner: psycopg.Connection[tuple[object, ...]]) -> None:
    waits = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'book'::regclass"
    while not owner.execute(waits).fetchall():
        time.sleep(0.02)
    owner.commit()
