"""A row that a site will not take waits there with its image and its reason, while everything else goes on (S4-136)."""

from contextlib import closing

import pytest

from concord.databases.postgresql.ledger.waiting_table import drop, others
from concord.databases.postgresql.upkeep.decide import Desk
from concord.jobs.waiting import Choice, columns_given
from concord.jobs.what_if import version_of
from concord.messages.errors import DecisionRefused
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import carry, settle
from tests.given.two_sites import Pair, carried
from tests.link.waiting.library import CHEAP, LIBRARY, counts, keys, shown, waiting

pytestmark = pytest.mark.spark


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    made = pair(*LIBRARY)
    made.capetown.run(CHEAP)
    return made


def test_a_refused_row_waits_with_image_and_reason_while_the_others_arrive(sites: Pair) -> None:
    sites.london.run("UPDATE book SET price = price + 90")  # 10 to 20 become too dear
    assert shown(carried(sites.run())) == {"acquired": 20, "applied": 9, "quarantined": 11}
    assert sites.capetown.rows("SELECT id FROM book WHERE price > 90 ORDER BY id") == [
        (n,) for n in range(1, 10)
    ]
    assert sites.london.value("SELECT count(*) FROM concord.waiting") == 0
    assert len(waiting(sites.capetown)) == 11
    entry = waiting(sites.capetown)[0]
    assert (entry["kind"], entry["link"], entry["key"]) == ("quarantined", "london_capetown/forward", ["10"])
    assert entry["row_image"] == {"id": "10", "title": "book 10", "isbn": "isbn 10", "price": "100.00"}
    assert 'violates check constraint "cheap"' in entry["reason"]
    assert (entry["version"]["origin"], entry["tries"]) == ("london#1", 1)


def test_every_run_tries_again_and_what_is_taken_at_last_leaves(sites: Pair) -> None:
    sites.london.run("UPDATE book SET price = 500 WHERE id IN (3, 4)")
    settle(sites)
    again = {"acquired": 2, "quarantined": 2, "retried": 2}
    assert counts(sites) == again
    assert [each["tries"] for each in waiting(sites.capetown)] == [3, 3]
    sites.capetown.run("ALTER TABLE book DROP CONSTRAINT cheap")
    assert counts(sites) == {"acquired": 2, "applied": 2, "retried": 2}
    assert waiting(sites.capetown) == []
    assert sites.equal
    assert carry(sites.job()) == carry(sites.job("reverse")) == {}


def test_those_are_tried_again_that_were_tried_longest_ago(
    sites: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concord.databases.postgresql.ledger.waiting.TRIED_AGAIN", 1)
    sites.london.run("UPDATE book SET price = 500 WHERE id <= 3")
    carry(sites.job())
    for _ in range(3):
        assert counts(sites) == {"acquired": 1, "quarantined": 1, "retried": 1}
    assert [each["tries"] for each in waiting(sites.capetown)] == [2, 2, 2]


def test_a_newer_version_supersedes_the_one_that_waits(sites: Pair) -> None:
    sites.london.run("UPDATE book SET price = 500 WHERE id = 3")
    carry(sites.job())
    sites.london.run("UPDATE book SET price = 600 WHERE id = 3")
    assert counts(sites) == {"acquired": 1, "quarantined": 1}
    (entry,) = waiting(sites.capetown)
    assert (entry["row_image"]["price"], entry["tries"]) == ("600.00", 1)
    sites.london.run("UPDATE book SET price = 60 WHERE id = 3")
    assert counts(sites) == {"acquired": 1, "applied": 1}
    assert waiting(sites.capetown) == []
    settle(sites)
    assert sites.equal
    assert sites.conflicts() == []


def test_an_edit_at_the_target_while_the_row_waits_is_a_conflict_like_any_other(sites: Pair) -> None:
    sites.london.run("UPDATE book SET price = 500 WHERE id = 3")
    carry(sites.job())
    sites.capetown.run("UPDATE book SET title = 'later, in ignorance' WHERE id = 3")
    settle(sites)
    assert waiting(sites.capetown) == []
    assert sites.equal
    (conflict,) = sites.conflicts()
    assert (conflict["loser_site"], conflict["loser_row"]["price"]) == ("london", "500.00")


def test_children_of_a_refused_parent_wait_with_it_and_arrive_with_it(sites: Pair) -> None:
    sites.london.run(
        "INSERT INTO book VALUES (30, 'dear', 'isbn 30', 900), (31, 'cheap', 'isbn 31', 9)",
        "INSERT INTO loan VALUES (1, 30), (2, 31)",
        "INSERT INTO loan VALUES (3, 31, 1), (4, 31, 2), (5, 31, 3)",
    )
    assert counts(sites, "public.loan") == {"acquired": 5, "applied": 2, "quarantined": 3}
    assert keys(sites.capetown) == [("book", "30"), ("loan", "1"), ("loan", "3"), ("loan", "5")]
    assert "loan_book_fkey" in waiting(sites.capetown)[1]["reason"]
    settle(sites)
    assert sites.capetown.value("SELECT count(*) FROM loan") == 2
    sites.capetown.run("ALTER TABLE book DROP CONSTRAINT cheap")
    carry(sites.job())
    assert keys(sites.capetown) == []
    assert sites.equal


def test_what_a_trigger_of_the_target_refuses_waits(sites: Pair) -> None:
    sites.capetown.run(
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN IF NEW.title = 'no' THEN RAISE EXCEPTION 'not that title'; END IF; RETURN NEW; END$$",
        "CREATE TRIGGER no BEFORE INSERT OR UPDATE ON book FOR EACH ROW EXECUTE FUNCTION no()",
        "ALTER TABLE book ENABLE ALWAYS TRIGGER no",
    )
    sites.london.run(
        "UPDATE book SET title = 'no' WHERE id = 3", "UPDATE book SET title = 'yes' WHERE id = 4"
    )
    assert counts(sites) == {"acquired": 2, "applied": 1, "quarantined": 1}
    assert waiting(sites.capetown)[0]["reason"] == "not that title"


def test_what_is_too_long_for_an_index_of_the_target_waits(sites: Pair) -> None:
    sites.capetown.run("CREATE INDEX ON book (title)")
    sites.london.run(
        "INSERT INTO book SELECT 30, string_agg(md5(n::text), '') FROM generate_series(1, 1000) n",
        "INSERT INTO book VALUES (31, 'short')",
    )
    assert counts(sites) == {"acquired": 2, "applied": 1, "quarantined": 1}
    assert waiting(sites.capetown)[0]["reason"].startswith("index row ")


def test_a_winner_that_is_refused_defeats_nobody(sites: Pair) -> None:
    """The loser is logged in the transaction of its defeat, and there was none."""
    sites.capetown.run("UPDATE book SET title = 'first' WHERE id = 3")
    sites.london.run("UPDATE book SET title = 'second', price = 500 WHERE id = 3")
    assert counts(sites) == {"acquired": 1, "quarantined": 1}
    assert sites.capetown.conflicts() == []
    assert sites.capetown.value("SELECT title FROM book WHERE id = 3") == "first"
    carry(sites.job("reverse"))
    (conflict,) = sites.conflicts()
    assert (conflict["winner_site"], conflict["loser_row"]["title"]) == ("london", "first")
    sites.capetown.run("ALTER TABLE book DROP CONSTRAINT cheap")
    settle(sites)
    assert sites.equal
    assert len(sites.conflicts()) == 1
    assert keys(sites.capetown) == []


def decide(sites: Pair, choice: Choice, direction: str = "forward") -> None:
    """Decide the only row that waits."""
    with closing(Desk(sites.job(direction))) as desk:
        (row,) = desk.entries(10)
        desk.decide(row, choice, "Ada")


def test_a_person_mends_a_refused_row_and_every_site_follows(sites: Pair) -> None:
    sites.london.run("UPDATE book SET title = 'dear', price = 500 WHERE id = 3")
    carry(sites.job())
    with pytest.raises(DecisionRefused, match="mend what refuses it"):
        decide(sites, "source")
    with pytest.raises(DecisionRefused, match="has no column prize; it has id, isbn, price, title"):
        decide(sites, {"prize": 5})
    decide(sites, {"price": "99.00"})
    assert waiting(sites.capetown) == []
    assert sites.capetown.rows("SELECT title, price::text FROM book WHERE id = 3") == [("dear", "99.00")]
    settle(sites)
    assert sites.london.rows("SELECT title, price::text FROM book WHERE id = 3") == [("dear", "99.00")]
    assert sites.equal
    assert sites.conflicts() == []
    assert carry(sites.job()) == carry(sites.job("reverse")) == {}


def test_a_persons_own_row_is_written_as_it_was_said_and_keeps_its_key(pair: MakePair) -> None:
    sites = pair(
        "CREATE TABLE book (id int PRIMARY KEY, doc text, data jsonb, sold text, price numeric)",
        "INSERT INTO book VALUES (3, 'a', '{}', 'f', 3)",
    )
    sites.capetown.run(CHEAP)
    sites.london.run("UPDATE book SET price = 500")
    carry(sites.job())
    with pytest.raises(DecisionRefused, match="id belongs to the key, which stays 3; leave it out"):
        decide(sites, {"id": 99, "price": 5})
    said = '{"id": 3, "doc": {"é": true}, "data": [1.5, null], "sold": true, "price": 12.345678901234567890}'
    decide(sites, columns_given(said) or {})
    assert sites.capetown.rows("SELECT id, doc, data::text, sold, price::text FROM book") == [
        (3, '{"é": true}', "[1.5, null]", "true", "12.345678901234567890")
    ]


def test_a_person_lets_the_targets_row_stand_also_where_it_has_none(sites: Pair) -> None:
    sites.london.run("INSERT INTO book VALUES (30, 'dear', 'isbn 30', 900)")
    carry(sites.job())
    decide(sites, "target")
    settle(sites)
    assert sites.london.value("SELECT count(*) FROM book WHERE id = 30") == 0
    assert sites.equal
    assert waiting(sites.capetown) == []


def test_nobody_decides_about_what_he_has_not_seen(sites: Pair) -> None:
    sites.london.run("UPDATE book SET price = 500 WHERE id = 3")
    carry(sites.job())
    with closing(Desk(sites.job())) as desk:
        (row,) = desk.entries(10)
        assert (row.incoming_row or {})["price"] == "500.00"
        assert (row.present_row or {})["price"] == "3.00"
        sites.capetown.run("UPDATE book SET price = 4 WHERE id = 3")
        with pytest.raises(DecisionRefused, match="one of the rows was changed meanwhile"):
            desk.decide(row, "target", "Ada")
    assert sites.capetown.value("SELECT price::text FROM book WHERE id = 3") == "4.00"


def test_what_waits_for_a_link_that_is_gone_can_be_let_go_into_the_log(sites: Pair) -> None:
    sites.london.run("UPDATE book SET price = 500 WHERE id = 3")
    carry(sites.job())
    access = sites.capetown.access
    assert others(access, ["london_capetown/forward"]) == []
    (row,) = others(access, [])
    drop(access, row, "Ada")
    assert waiting(sites.capetown) == []
    (entry,) = sites.capetown.conflicts()
    assert (entry["type"], entry["resolver"], entry["loser_row"]["price"]) == ("dropped", "person", "500.00")
    assert entry["reason"].startswith("Ada let go of it: ")
    assert version_of(entry["winner_version"]).is_absent
