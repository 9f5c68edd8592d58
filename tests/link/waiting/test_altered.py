"""A row that waits while its table is altered waits on, is tried again when a person says so, and stops nobody
else."""

from contextlib import closing

import pytest

from concord.databases.postgresql.upkeep.decide import Desk
from concord.messages.errors import DecisionRefused
from tests.given.fixtures import MakePair
from tests.given.goes_on import goes_on
from tests.given.link_without_spark import carry, settle
from tests.given.site import provision_site
from tests.given.two_sites import Pair
from tests.link.waiting.library import CHEAP, LIBRARY, counts, keys, waiting

pytestmark = pytest.mark.spark


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    made = pair(*LIBRARY)
    made.capetown.run(CHEAP)
    return made


def test_an_image_that_is_no_value_of_its_column_any_more_waits_on_while_the_others_arrive(
    pair: MakePair,
) -> None:
    sites = pair(
        "CREATE TABLE book (id int PRIMARY KEY, price numeric(8,2))", "INSERT INTO book VALUES (3, 3), (4, 4)"
    )
    sites.capetown.run(CHEAP)
    sites.london.run("UPDATE book SET price = 500 WHERE id = 3")
    carry(sites.job())
    sites.capetown.run("""UPDATE concord.waiting SET row_image = row_image || '{"price": "dear"}'""")
    sites.london.run("UPDATE book SET price = 4.5 WHERE id = 4")
    assert counts(sites) == {"acquired": 2, "applied": 1, "quarantined": 1, "retried": 1}
    (entry,) = waiting(sites.capetown)
    assert 'invalid input syntax for type numeric: "dear"' in entry["reason"]
    assert sites.capetown.rows("SELECT price::text FROM book WHERE id IN (3, 4) ORDER BY id") == [
        ("3.00",),
        ("4.50",),
    ]


@pytest.mark.parametrize("unique", ["UNIQUE (isbn)", "EXCLUDE USING btree (isbn WITH =)"])
def test_such_an_image_waits_on_also_where_rows_give_way_for_unique_values(
    pair: MakePair, unique: str
) -> None:
    """It is found by a try in which no row gives way; in the next one the others do, and none of them waits."""
    sites = pair(
        "CREATE TYPE kind AS ENUM ('novel', 'poem')",
        f"CREATE TABLE book (id int PRIMARY KEY, kind kind, isbn text, price numeric(8,2), {unique})",
        "INSERT INTO book VALUES (3, 'novel', 'c', 3)",
    )
    sites.capetown.run(CHEAP)
    sites.london.run("UPDATE book SET price = 500 WHERE id = 3")
    carry(sites.job())
    sites.capetown.run("""UPDATE concord.waiting SET row_image = row_image || '{"kind": "essay"}'""")
    sites.london.run("INSERT INTO book VALUES (4, 'poem', 'd', 4), (6, 'poem', 'e', 600)")
    sites.capetown.run("INSERT INTO book VALUES (5, 'novel', 'd', 5)")
    assert counts(sites) == {"acquired": 3, "applied": 1, "conflicts": 1, "quarantined": 2, "retried": 1}
    entry, dear = waiting(sites.capetown)
    assert (entry["key"], entry["reason"]) == (["3"], 'invalid input value for enum public.kind: "essay"')
    assert dear["key"] == ["6"]
    assert sites.capetown.rows("SELECT id, isbn FROM book ORDER BY id") == [(3, "c"), (4, None), (5, "d")]


def test_a_row_of_a_table_that_was_altered_waits_until_a_person_tries_it_again(sites: Pair) -> None:
    sites.london.run("UPDATE book SET price = 50 WHERE id = 3", "UPDATE book SET price = 500 WHERE id = 4")
    carry(sites.job())
    sites.capetown.run(
        "UPDATE concord.waiting SET structure = 'another'", "ALTER TABLE book DROP CONSTRAINT cheap"
    )
    assert carry(sites.job()) == {}
    with closing(Desk(sites.job())) as desk:
        (row,) = desk.entries(10)
        desk.retry(row)
    assert counts(sites) == {"acquired": 1, "applied": 1, "retried": 1}
    assert sites.equal


def test_what_waits_in_columns_of_before_is_left_to_an_edit_at_its_source(sites: Pair) -> None:
    sites.london.run("UPDATE book SET price = 500 WHERE id = 3")
    carry(sites.job())
    for site in sites.sites:
        site.run("ALTER TABLE book ADD COLUMN note text")
        provision_site(site, sites.tables)
    with closing(Desk(sites.job())) as desk:
        (row,) = desk.entries(10)
        for choice in ("target", {"price": "5"}):
            with pytest.raises(
                DecisionRefused,
                match=r"had other columns then, or .* too large to be logged \(note\); edit it at its",
            ):
                desk.decide(row, choice, "Ada")
        with pytest.raises(
            DecisionRefused,
            match="had other columns then, or such in which it reads otherwise; edit the row at its source",
        ):
            desk.retry(row)
    settle(sites)
    assert keys(sites.capetown) == [("book", "3")]
    sites.london.run("UPDATE book SET price = 50 WHERE id = 3")
    settle(sites)
    assert keys(sites.capetown) == []
    assert sites.equal


def test_what_waits_in_a_column_of_another_type_is_left_to_an_edit_at_its_source(pair: MakePair) -> None:
    sites = pair("CREATE TABLE book (id int PRIMARY KEY, shelf text, price numeric(8,2))")
    sites.capetown.run(CHEAP)
    sites.london.run("INSERT INTO book VALUES (3, 'top', 500), (4, '4', 500)")
    carry(sites.job())
    for site in sites.sites:
        site.run("ALTER TABLE book ALTER shelf TYPE int USING length(shelf)")
        provision_site(site, sites.tables)
    sites.capetown.run("ALTER TABLE book DROP CONSTRAINT cheap")
    with closing(Desk(sites.job())) as desk:
        top, four = desk.entries(10)
        with pytest.raises(
            DecisionRefused,
            match=r'other types then: invalid input syntax for type integer: "top"; edit the row',
        ):
            desk.retry(top)
        desk.retry(four)
    assert carry(sites.job())["public.book"].applied == 1
    assert keys(sites.capetown) == [("book", "3")]


def test_what_would_read_otherwise_in_the_columns_of_now_is_not_tried_again(pair: MakePair) -> None:
    sites = pair("CREATE TABLE book (id int PRIMARY KEY, title text, price numeric(8,2))")
    sites.capetown.run(CHEAP)
    sites.london.run("INSERT INTO book VALUES (3, 'Lear', 500)")
    carry(sites.job())
    for site in sites.sites:
        site.run("ALTER TABLE book ALTER title TYPE varchar(3) USING right(title, 3)")
        provision_site(site, sites.tables)
    with closing(Desk(sites.job())) as desk:
        (row,) = desk.entries(10)
        with pytest.raises(
            DecisionRefused, match="or such in which it reads otherwise; edit the row at its source"
        ):
            desk.retry(row)
    sites.london.run("UPDATE book SET price = 5")
    settle(sites)
    assert (keys(sites.capetown), sites.equal) == ([], True)
    assert sites.capetown.rows("TABLE book") == [(3, "ear", 5)]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("tsquery", "syntax error in tsquery"),
        ("tsvector", "syntax error in tsvector"),
        ("jsonpath", "syntax error"),
    ],
)
def test_what_is_no_query_or_path_any_more_waits_on_while_the_others_arrive(
    pair: MakePair, kind: str, said: str
) -> None:
    """PostgreSQL calls such a value a syntax error."""
    sites = pair(f"CREATE TABLE book (id int PRIMARY KEY, sought {kind}, price numeric(8,2))")
    sites.capetown.run(CHEAP)
    sites.london.run("INSERT INTO book VALUES (3, NULL, 500)")
    carry(sites.job())
    sites.capetown.run("""UPDATE concord.waiting SET row_image = row_image || '{"sought": "''a ("}'""")
    sites.london.run("INSERT INTO book VALUES (4, NULL, 4)")
    with goes_on():
        counted = counts(sites)
    assert counted == {"acquired": 2, "applied": 1, "quarantined": 1, "retried": 1}
    (entry,) = waiting(sites.capetown)
    assert entry["reason"].startswith(said)


def test_a_key_that_is_no_value_any_more_neither_hides_nor_keeps_what_waits_beside_it(pair: MakePair) -> None:
    sites = pair(
        "CREATE TYPE kind AS ENUM ('novel', 'poem', 'essay')",
        "CREATE TABLE book (id kind PRIMARY KEY, price numeric(8,2))",
        "INSERT INTO book VALUES ('novel', 1), ('poem', 2), ('essay', 3)",
    )
    sites.capetown.run(CHEAP)
    sites.london.run("UPDATE book SET price = 500")
    carry(sites.job())
    for site in sites.sites:
        site.run("ALTER TYPE kind RENAME VALUE 'novel' TO 'roman'")
        provision_site(site, sites.tables)
    with closing(Desk(sites.job())) as desk:
        found = {row.key[0]: row for row in desk.entries(10)}
        assert {name: row.present_row for name, row in found.items()} == {
            "novel": None,
            "poem": {"id": "poem", "price": "2.00"},
            "essay": {"id": "essay", "price": "3.00"},
        }
        with pytest.raises(
            DecisionRefused, match=r'then: invalid input value for enum public.kind: "novel"; edit'
        ):
            desk.decide(found["novel"], "target", "Ada")
        desk.decide(found["poem"], "target", "Ada")
    assert sites.capetown.rows("SELECT * FROM book ORDER BY id") == [("roman", 1), ("poem", 2), ("essay", 3)]
    sites.london.run("UPDATE book SET price = 50 WHERE id IN ('roman', 'essay')")
    settle(sites)
    assert (keys(sites.capetown), sites.equal) == ([("book", "novel")], True)
    assert sites.london.rows("SELECT * FROM book ORDER BY id") == [("roman", 50), ("poem", 2), ("essay", 50)]


def test_an_old_key_that_fits_no_longer_stops_nobody(pair: MakePair) -> None:
    sites = pair("CREATE TABLE book (id int PRIMARY KEY, title text)")
    sites.london.run("INSERT INTO book VALUES (1, 'one')")
    sites.capetown.run(
        "INSERT INTO concord.waiting (link, table_name, key, synchronization, kind, version, row_image, structure,"
        " reason, transmission) VALUES ('london_capetown/forward', 'public.book', '[\"x\"]', 'london_capetown',"
        """ 'quarantined', '{"origin": "london#1", "changed_at": 1, "derived": 0}', '{"id": "x"}', 'of before',"""
        " 'refused', 't')"
    )
    carry(sites.job())
    assert sites.capetown.rows("TABLE book") == [(1, "one")]
    assert keys(sites.capetown) == [("book", "x")]
    with closing(Desk(sites.job())) as desk:
        (row,) = desk.entries(10)
        assert (row.key, row.present_row) == (["x"], None)
