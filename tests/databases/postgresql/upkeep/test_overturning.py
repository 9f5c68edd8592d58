"""A loser is brought back as a new version, once, and every site follows; or it is refused in one line."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from concord.databases.postgresql.upkeep import overturning
from concord.jobs.ledger import Entry, Image
from concord.messages.errors import ConstraintViolated
from embedded.postgres import Server
from tests.conftest import Database
from tests.databases.postgresql.upkeep.overturned import overturn, refused
from tests.given import ledger_entries
from tests.given.edits_in_order import BOOK, edit
from tests.given.fixtures import MakePair, MakeUnlike, site_on
from tests.given.marked_sites import open_shops
from tests.given.site import Rows
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

FAMILY = (
    "CREATE TABLE parent (id int PRIMARY KEY, name text UNIQUE)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)",
    "INSERT INTO parent VALUES (1, 'one'), (2, 'two')",
    "INSERT INTO child VALUES (1, 1)",
)


def versions(sites: Pair, table: str = "public.book") -> list[Rows]:
    return [site.rows(f'SELECT to_jsonb(s) FROM concord."{table}" s') for site in sites.sites]


@pytest.mark.parametrize("first", ["forward", "reverse"])
def test_whatever_lost_comes_back_and_every_site_follows_without_another_conflict(
    pair: MakePair, first: str
) -> None:
    sites = pair(*BOOK)
    london, capetown = sites.sites
    edit(
        (london, "UPDATE book SET title = 'london', price = 9.90 WHERE id IN (1, 2)"),
        (london, "DELETE FROM book WHERE id IN (3, 4)"),
        (london, "INSERT INTO book VALUES (50, 'london', NULL)"),
        (london, "UPDATE book SET title = 'alike' WHERE id = 5"),
        (capetown, "UPDATE book SET title = 'capetown' WHERE id IN (1, 3)"),
        (capetown, "DELETE FROM book WHERE id IN (2, 4)"),
        (capetown, "INSERT INTO book VALUES (50, 'capetown', 1)"),
        (capetown, "UPDATE book SET title = 'another' WHERE id = 5"),
    )
    sites.settle(first=first)
    entries = {entry.key[0]: entry for entry in ledger_entries.entries(sites)}
    assert {key: entry.conflict_type for key, entry in entries.items()} == {
        "1": "update_update", "2": entries["2"].conflict_type, "3": entries["3"].conflict_type,
        "5": "update_update", "50": "insert_insert",
    }  # fmt: skip

    done = {key: overturn(sites, entries[key]) for key in ("1", "2", "3", "50")}
    of_two_deletes = replace(entries["1"], winner_row=None, loser_row=None)
    assert "both sites deleted the row" in str(of_two_deletes.refusal), "an earlier release logged these"
    decided = london if entries["5"].site == "london" else capetown
    decided.run(f"UPDATE book SET title = '{entries['5'].loser_row['title']}' WHERE id = 5")  # type: ignore[index]
    assert "is as the loser was already" in refused(sites, entries["5"], although_changed=True)
    sites.settle(first=first)

    rows = "SELECT id, title, price::text FROM book WHERE id IN (1, 2, 3, 50) ORDER BY id"
    brought_back = [(1, "london", "9.90"), (2, "london", "9.90"), (50, "london", None)]
    assert london.rows(rows) == capetown.rows(rows) == brought_back
    assert sites.equal
    assert len(ledger_entries.entries(sites)) == len(entries), (
        "the new version includes both: no further conflict"
    )
    here = entries["1"].site
    for key, each in done.items():
        assert each.version["origin"] == f"{here}#1"
        assert {"london#1", "capetown#1"} <= set(each.version["vector"])
        assert each.version["deleted"] is (key == "3")
    reports = sites.settle(first=first)
    assert sum(report.total("acquired") for report in reports) == 0, "quiet again"
    assert "a person overturned it at" in refused(sites, entries["1"], although_changed=True)


def test_a_row_that_was_changed_since_is_left_alone_unless_the_person_insists(pair: MakePair) -> None:
    sites = pair(*BOOK)
    edit(
        (sites.london, "UPDATE book SET title = 'london' WHERE id <= 3"),
        (sites.capetown, "UPDATE book SET title = 'capetown' WHERE id <= 2"),
        (sites.capetown, "DELETE FROM book WHERE id = 3"),
    )
    sites.settle()
    changed, known_elsewhere, forgotten = ledger_entries.entries(sites)
    sites.capetown.run("UPDATE book SET title = 'later' WHERE id = 1")
    said = refused(sites, changed)
    assert "the row was changed at capetown since it was decided" in said
    assert "--even-if-changed" in said
    overturn(sites, changed, although_changed=True)

    for site in sites.sites:
        site.run('DELETE FROM concord."public.book" WHERE deleted')
    overturn(sites, forgotten)  # a tombstone that was cleaned away is no change
    overturn(sites, known_elsewhere)
    edit((sites.london, "UPDATE book SET title = 'in ignorance' WHERE id = 2"))
    sites.settle()
    assert sites.equal
    assert sites.london.rows("SELECT title FROM book WHERE id <= 3 ORDER BY id") == [
        ("london",),
        ("in ignorance",),
        ("london",),
    ]
    known = {changed.id, known_elsewhere.id, forgotten.id}
    (conflict,) = [entry for entry in ledger_entries.entries(sites) if entry.id not in known]
    assert (conflict.key, conflict.loser_row) == (["2"], {"id": "2", "title": "london", "price": "1.50"})


def test_a_process_that_dies_on_the_way_leaves_nothing_and_the_next_one_does_it(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = pair(*BOOK)
    entry = decided(sites, "public.book", {"id": "7", "title": "back", "price": None})
    before = versions(sites)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(overturning, "_remember", die)
        with pytest.raises(KeyboardInterrupt):
            overturn(sites, entry)
    assert versions(sites) == before
    assert sites.capetown.value("SELECT count(*) FROM concord.overturn") == 0
    assert sites.capetown.value("SELECT count(*) FROM pg_class WHERE relname LIKE 't\\_%\\_0'") == 0
    done = overturn(sites, entry)
    assert sites.capetown.rows("SELECT title, price FROM book WHERE id = 7") == [("back", None)]
    assert sites.capetown.rows(
        "SELECT conflict, person, version, although_changed FROM concord.overturn"
    ) == [(entry.id, "a person", done.version, False)]


def decided(sites: Pair, table: str, loser: Image | None, key: str = "7") -> Entry:
    """An entry as if Cape Town's row, which nobody has changed, had won there."""
    winner = {"origin": "", "changed_at": 0, "derived": 0, "vector": {}, "deleted": False}
    return Entry(
        id="0f" * 32,
        synchronization=sites.synchronization,
        link=f"{sites.synchronization}/forward",
        transmission="t",
        table_name=table,
        key=[key],
        conflict_type="update_update",
        resolver="latest_timestamp",
        reason="changed_at differs",
        winner_site="capetown",
        loser_site="london",
        winner_version=winner,
        loser_version={**winner, "origin": "london#1", "deleted": loser is None},
        winner_row={"id": key},
        loser_row=loser,
        withheld={},
        decided_at=ledger_entries.EVER,
        site="capetown",
    )


def test_a_loser_that_a_constraint_does_not_take_is_refused_and_nothing_is_written(pair: MakePair) -> None:
    sites = pair(*FAMILY)
    losers: list[tuple[str, str, Image | None]] = [
        ("public.parent", "1", None),
        ("public.parent", "1", {"id": "1", "name": "two"}),
        ("public.child", "1", {"id": "1", "parent": "9"}),
    ]
    for table, key, loser in losers:
        entry = decided(sites, table, loser, key)
        before = versions(sites, table)
        with pytest.raises(ConstraintViolated, match="capetown"):
            overturn(sites, entry)
        assert versions(sites, table) == before
    assert sites.capetown.rows("SELECT id FROM parent ORDER BY id") == [(1,), (2,)]
    assert sites.capetown.value("SELECT count(*) FROM concord.overturn") == 0


def test_a_row_whose_columns_are_others_now_is_refused(pair: MakePair) -> None:
    sites = pair(*BOOK)
    entry = decided(sites, "public.book", {"id": "7", "titel": "back", "price": None})
    assert "had other columns then (titel, title)" in refused(sites, entry)


def test_a_row_whose_changes_are_found_by_the_applications_marks_is_refused(
    server_with_logins: Server, database: Callable[[], Database], spark: SparkSession
) -> None:
    both = [site_on(server_with_logins, name, database().name) for name in ("london", "capetown")]
    sites = open_shops(*both, lambda: spark).pair
    loser: Image = {"id": "7", "note": "back", "updated_at": "2026-01-01 00:00:00+00", "is_deleted": "false"}
    said = refused(sites, decided(sites, "public.customer", loser))
    assert "are found by marks of the application; put the row back there yourself" in said
    for site in both:
        site.connection.close()


def test_the_sites_own_triggers_stay_silent_and_capture_does_not(pair: MakePair) -> None:
    """S0-17: the row is to be what it was, whatever a trigger would make of it."""
    sites = pair(*BOOK)
    sites.capetown.run(
        "CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN NEW.title := upper(NEW.title); RETURN NEW; END$$",
        "CREATE TRIGGER shout BEFORE INSERT OR UPDATE ON book FOR EACH ROW EXECUTE FUNCTION shout()",
    )
    entry = decided(sites, "public.book", {"id": "7", "title": "back", "price": "2.00"})
    done = overturn(sites, entry)
    assert sites.capetown.rows("SELECT title, price::text FROM book WHERE id = 7") == [("back", "2.00")]
    stored = sites.capetown.value('SELECT to_jsonb(s) FROM concord."public.book" s WHERE id = 7')
    assert (stored["changed_at"], stored["received_from"]) == (done.version["changed_at"], None)


def test_what_is_withheld_cannot_come_back(pair: MakePair) -> None:
    sites = pair(*BOOK)
    entry = decided(sites, "public.book", {"id": "7", "title": "0a1b"})
    withheld = replace(entry, withheld={"columns": {"title": "hashed", "price": "dropped"}})
    assert withheld.refusal == "price, title of the row that lost are private and not kept here"
    assert replace(withheld, loser_row=None).refusal is None, "a delete has nothing that could be withheld"


MAPPED = """
- table: public.account
  columns: [id, iban, holder]
  mappings:
    capetown:
      rename: {id: number}
      split: {iban: {into: [bank, account], lengths: [4, 6]}}
"""


@pytest.fixture
def mapped(unlike: MakeUnlike) -> Pair:
    return unlike(
        MAPPED,
        "CREATE TABLE account (id int PRIMARY KEY, iban text, holder text)",
        "CREATE TABLE account"
        " (number int PRIMARY KEY, bank text, account text, holder text, branch text DEFAULT 'new')",
    )


def test_a_mapped_row_comes_back_in_each_sites_own_columns_and_unlisted_ones_stay(mapped: Pair) -> None:
    london, capetown = mapped.sites
    london.run("INSERT INTO account VALUES (1, 'BANK000001', 'Ada'), (2, 'BANK000002', 'Ada')")
    mapped.settle()
    capetown.run("UPDATE account SET branch = 'Rosebank'")
    edit(
        (london, "UPDATE account SET iban = 'KONT123456', holder = NULL"),
        (capetown, "UPDATE account SET holder = 'Grace' WHERE number = 1"),
        (capetown, "DELETE FROM account WHERE number = 2"),
    )
    mapped.run("forward")
    for entry in ledger_entries.entries(mapped):
        overturn(mapped, entry)
    mapped.settle()
    assert mapped.equal
    assert capetown.rows("SELECT * FROM account ORDER BY number") == [
        (1, "KONT", "123456", None, "Rosebank"),
        (2, "KONT", "123456", None, "new"),
    ]
    assert london.rows("SELECT * FROM account ORDER BY id") == [
        (1, "KONT123456", None),
        (2, "KONT123456", None),
    ]
