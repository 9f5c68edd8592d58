"""Operations on a table that the subscriber keeps differently arrive in its own columns (S0-06)."""

from collections.abc import Callable

import pytest

from concord.databases.postgresql.entries import from_log
from concord.messages.errors import NotInitialized, StructureChanged
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
from tests.given.mapped_replication import account, begin_mapped, expected, kept, mapped_table
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]
CAPTURES = pytest.mark.parametrize("capture", ["log", "triggers"])
LONG = "long " * 20_000


@pytest.fixture
def sites(replicated: Make, capture: str) -> Replicated:
    made = begin_mapped(replicated, capture=capture)
    made.london.run(account(1), account(2, status="'I'", active="false", note=r"E'tab\there \\ and\nline'"))
    made.initialize()
    return made


def test_the_first_copy_is_mapped(sites: Replicated) -> None:
    assert [row[:4] for row in kept(sites)] == [
        (1, "BANK", "123456", "Ada Lovelace"),
        (2, "BANK", "123456", "Ada Lovelace"),
    ]
    assert kept(sites) == expected(sites)


def test_inserts_updates_and_deletes_are_mapped(sites: Replicated) -> None:
    sites.london.run(
        account(3, iban="NULL", first="NULL", last="NULL", tail="NULL", status="NULL"),
        "UPDATE account SET status = 'I', last = 'Byron', active = NOT active WHERE id = 1",
        r"UPDATE account SET note = E'\\N' || chr(9) || 'é', iban = 'KONT000042' WHERE id = 3",
        "UPDATE account SET id = 20, tail = -7 WHERE id = 2",
        account(4),
        "DELETE FROM account WHERE id = 4",
    )
    report = sites.run()
    assert (report.entries, report.operations, report.conversions) == (6, 6, 0)
    assert kept(sites) == expected(sites)


def test_a_large_transaction_is_mapped_and_replayed_by_set(sites: Replicated) -> None:
    sites.settings = {**(sites.settings or {}), "set_based_from": 50}
    sites.london.run(
        "WITH x AS (INSERT INTO account SELECT n, 'BANK' || 100000 + n, 'A', 'B' || n, n, 'I', true, n"
        " FROM generate_series(10, 99) n RETURNING id) INSERT INTO seat SELECT id, id FROM x",
        "UPDATE account SET id = id + 100, status = 'A' WHERE id > 9",
        "DELETE FROM account WHERE id % 2 = 0",
        "TRUNCATE account",
        "INSERT INTO account SELECT n, 'BANK' || 100000 + n, 'A', 'B' || n, n, 'I', true, n"
        " FROM generate_series(1, 60) n",
    )
    report = sites.run()
    assert (report.largest, report.conversions) == (180, 0)
    assert kept(sites) == expected(sites)
    assert len(kept(sites)) == 60


def test_the_subscribers_own_columns_keep_their_values(sites: Replicated) -> None:
    sites.capetown.run("UPDATE account SET branch = 9 WHERE id = 1")
    sites.london.run("UPDATE account SET status = 'I' WHERE id = 1", account(5))
    sites.run()
    assert sites.capetown.rows("SELECT id, branch FROM account ORDER BY id") == [(1, 9), (2, 7), (5, 7)]


def test_a_mapped_and_a_straight_table_stay_in_one_transaction_and_in_order(sites: Replicated) -> None:
    """S0-02, and figure 2 (S0-12): who commits first is replayed first, whoever began before."""
    with sites.london.log_in(sites.london.superuser, autocommit=False) as first:
        first.execute("INSERT INTO seat VALUES (1, 1)")
        with sites.london.log_in(sites.london.superuser, autocommit=False) as second:
            second.execute("UPDATE account SET status = 'I' WHERE id = 1")
            second.execute("INSERT INTO seat VALUES (2, 1)")
        first.execute("UPDATE account SET status = 'A', last = 'King' WHERE id = 1")
        first.execute("DELETE FROM seat WHERE id = 2")
        first.execute("UPDATE account SET id = 30 WHERE id = 1")
        first.execute("UPDATE seat SET account = 30 WHERE id = 1")
    assert sites.run().entries == 2
    assert kept(sites) == expected(sites)
    assert sites.capetown.rows("SELECT id, account FROM seat") == [(1, 30)]
    by = "SELECT xmin::text FROM"
    assert sites.capetown.value(f"{by} account WHERE id = 30") == sites.capetown.value(f"{by} seat")


def test_batch_after_batch_is_mapped(sites: Replicated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_log, "OPERATIONS", 3)
    for key in range(3, 15):
        sites.london.run(account(key, tail=str(key)), f"UPDATE account SET status = 'I' WHERE id = {key - 1}")
    with sites.london.log_in(sites.london.superuser, autocommit=False) as user:
        for key in range(15, 25):
            user.execute(account(key).encode())
            user.execute(b"INSERT INTO seat VALUES (%d)" % key)
    assert sites.run().entries == 25
    assert kept(sites) == expected(sites)


def test_an_unchanged_value_that_is_not_sent_stays_as_the_mapping_made_it(replicated: Make) -> None:
    """The long value's own words differ at the subscriber; a value that is made of two comes whole."""
    words: tuple[AnyOperation, ...] = (
        Values(canonical=("kind",), own=("art",), words={LONG: "lang", "k": "kurz"}),
        Combine(canonical=("one", "two"), own=("both",), cut=Cut(parts=2, separator="|")),
    )
    made = begin_mapped(
        replicated,
        "CREATE TABLE item (id int PRIMARY KEY, kind text, one text, two text, note text)",
        "CREATE TABLE item (id int PRIMARY KEY, art text, both_ text, note text);"
        ' ALTER TABLE item RENAME both_ TO "both"',
        mapped_table(words, "item"),
    )
    made.london.run(
        *(f"ALTER TABLE item ALTER {name} SET STORAGE EXTERNAL" for name in ("kind", "one", "note"))
    )
    made.london.run(f"INSERT INTO item VALUES (1, '{LONG}', '{LONG}', 'b', '{LONG}')")
    made.initialize()
    made.london.run("UPDATE item SET two = 'c'", "UPDATE item SET id = 2", "UPDATE item SET note = 'n'")
    made.run()
    assert made.capetown.rows("TABLE item") == [(2, "lang", f"{LONG}|c", "n")]
    assert made.london.value("SELECT relreplident = 'f' FROM pg_class WHERE relname = 'item'")


def test_an_unsent_value_is_kept_where_the_log_brings_no_whole_rows(replicated: Make) -> None:
    words = (Values(canonical=("kind",), own=("art",), words={LONG: "lang", "k": "kurz"}),)
    made = begin_mapped(
        replicated,
        "CREATE TABLE item (id int PRIMARY KEY, kind text, note text)",
        "CREATE TABLE item (id int PRIMARY KEY, art text, note text)",
        mapped_table(words, "item"),
    )
    made.london.run("ALTER TABLE item ALTER kind SET STORAGE EXTERNAL")
    made.london.run(f"INSERT INTO item VALUES (1, '{LONG}', 'a'), (2, 'k', 'a')")
    made.initialize()
    assert made.london.value("SELECT relreplident = 'd' FROM pg_class WHERE relname = 'item'")
    made.london.run("UPDATE item SET note = 'b'", "UPDATE item SET id = id + 10")
    made.run()
    assert made.capetown.rows("TABLE item ORDER BY id") == [(11, "lang", "b"), (12, "kurz", "b")]


KEYS: dict[str, tuple[str, str, tuple[AnyOperation, ...], str]] = {
    "cast": (
        "id int PRIMARY KEY",
        "id text PRIMARY KEY",
        (Cast(canonical=("id",), own=("id",), canonical_type="integer", own_type="text"),),
        "SELECT id::text, note FROM item",
    ),
    "split": (
        "id text PRIMARY KEY",
        "airport text, number text, PRIMARY KEY (number, airport)",
        (Split(canonical=("id",), own=("airport", "number"), cut=Cut(parts=2, separator="-")),),
        "SELECT split_part(id, '-', 1), split_part(id, '-', 2), note FROM item",
    ),
    "combine": (
        "a text, b text, PRIMARY KEY (a, b)",
        "ab text PRIMARY KEY",
        (Combine(canonical=("a", "b"), own=("ab",), cut=Cut(parts=2, separator="-")),),
        "SELECT a || '-' || b, note FROM item",
    ),
}
CHANGES = {
    "cast": ("1", "2", "30"),
    "split": ("'CPT-1'", "'JNB-2'", "'CPT-30'"),
    "combine": ("'a', '1'", "'b', '2'", "'c', '30'"),
}


@pytest.mark.parametrize("by_set", [False, True])
@pytest.mark.parametrize("kind", KEYS)
def test_the_key_is_mapped_too_and_updates_and_deletes_find_their_rows(
    replicated: Make, kind: str, by_set: bool
) -> None:
    london, capetown, operations, query = KEYS[kind]
    how = {"set_based_from": 1} if by_set else {}
    made = begin_mapped(
        replicated,
        f"CREATE TABLE item ({london}, note text)",
        f"CREATE TABLE item ({capetown}, note text)",
        mapped_table(operations, "item"),
        conversions="refuse",
        **how,
    )
    one, two, moved = CHANGES[kind]
    made.london.run(f"INSERT INTO item VALUES ({one}, 'one'), ({two}, 'two')")
    made.initialize()
    key = "(a, b)" if kind == "combine" else "id"
    values = {each: f"({each})" for each in (one, two, moved)}
    made.london.run(
        f"UPDATE item SET note = 'changed' WHERE {key} = {values[one]}",
        f"DELETE FROM item WHERE {key} = {values[two]}",
        f"UPDATE item SET {key} = {values[moved]} WHERE {key} = {values[one]}",
        f"INSERT INTO item VALUES ({two}, 'again')",
    )
    report = made.run()
    assert (report.operations, report.conversions) == (4, 0)
    assert sorted(made.capetown.rows("TABLE item")) == sorted(made.london.rows(query))


def test_both_sites_may_keep_it_otherwise_than_the_set_says(replicated: Make) -> None:
    london = Manipulation(
        operations=(
            Split(canonical=("name",), own=("first", "last"), cut=Cut(parts=2, separator=" ")),
            Values(canonical=("state",), own=("s",), words={"open": "O", "closed": "C"}),
            Constant(canonical=(), own=("site",), value="LHR"),
        )
    )
    capetown = Manipulation(
        operations=(
            Rename(canonical=("name",), own=("naam",)),
            Values(canonical=("state",), own=("staat",), words={"open": "oop", "closed": "toe"}),
        )
    )
    table = ReplicatedTable(
        table=parse_table_name("public.shop"),
        columns=("id", "name", "state"),
        manipulations={"london": london, "capetown": capetown},
    )
    made = begin_mapped(
        replicated,
        "CREATE TABLE shop (id int PRIMARY KEY, first text, last text, s text, site text, own text)",
        "CREATE TABLE shop (id int PRIMARY KEY, naam text, staat text)",
        table,
    )
    made.london.run("INSERT INTO shop VALUES (1, 'Ada', 'King', 'O', 'LHR', 'x')")
    made.initialize()
    made.london.run(
        "UPDATE shop SET s = 'C', last = 'Byron'", "INSERT INTO shop VALUES (2, 'A', 'B', 'O', 'LHR')"
    )
    made.run()
    assert made.capetown.rows("TABLE shop ORDER BY id") == [(1, "Ada Byron", "toe"), (2, "A B", "oop")]


def test_a_mapping_that_the_tables_cannot_follow_is_refused_before_anything_is_read(
    sites: Replicated,
) -> None:
    wrong = mapped_table(
        (Split(canonical=("iban",), own=("bank", "number"), cut=Cut(parts=2, lengths=(4, 6))),)
    )
    sites.tables = (wrong, *sites.tables[1:])
    with pytest.raises(StructureChanged, match="lacks the column active of london"):
        sites.run()


def test_a_key_that_is_mapped_with_other_columns_is_refused(replicated: Make) -> None:
    """S0-23: half of a combined column identifies no row."""
    cut = Combine(canonical=("id", "kind"), own=("both_",), cut=Cut(parts=2, separator="-"))
    made = begin_mapped(
        replicated,
        "CREATE TABLE item (id text PRIMARY KEY, kind text)",
        "CREATE TABLE item (both_ text PRIMARY KEY)",
        mapped_table((cut,), "item"),
    )
    with pytest.raises(StructureChanged, match="has key columns that are mapped with others"):
        made.initialize()


def test_before_the_first_copy_nothing_is_replayed(replicated: Make) -> None:
    with pytest.raises(NotInitialized):
        begin_mapped(replicated).run()
