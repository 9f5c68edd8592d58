"""A table that somebody holds, alters or drops while rows are on their way stops itself; the message names who or what.
The others go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from concord.databases.postgresql.rows import repetition
from concord.messages.errors import ConcordError, WriteContended
from tests.given.at_step import At
from tests.given.failing_objects import BOOK, FUNCTIONS, OTHERS
from tests.given.fixtures import MakePair
from tests.given.site import Site
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tries."""
    monkeypatch.setattr(repetition, "PATIENCE", 0.0)


def edited(sites: Pair) -> Pair:
    sites.london.run("INSERT INTO book VALUES (1, 'A')", "UPDATE shop SET name = 'two'")
    return sites


@contextmanager
def held(site: Site, *statements: str) -> Iterator[int]:
    """By an open transaction of somebody; its process."""
    with site.log_in("postgres", autocommit=False) as user:
        user.execute("SET application_name = 'nightly'")
        for statement in statements:
            user.execute(statement.encode())
        yield user.info.backend_pid


def stopped(sites: Pair, **how: Any) -> str:
    """Why the table was stopped. No error of one table ends the run."""
    try:
        report = sites.run(**how)
    except ConcordError as error:
        pytest.fail(f"the run ended: {error}")
    (message,) = [str(each.stopped) for each in report.tables if each.table == "public.book"]
    return message


@pytest.mark.parametrize(
    "statement", ["LOCK TABLE book IN SHARE MODE", "INSERT INTO book VALUES (1, 'of somebody')"]
)
def test_a_table_that_somebody_holds_stops_itself_and_the_holder_is_named(
    pair: MakePair, statement: str
) -> None:
    sites = edited(pair(BOOK, *OTHERS))
    with held(sites.capetown, statement) as process:
        message = stopped(sites)
        assert sites.capetown.rows("SELECT name FROM shop") == [("two",)]
    assert message.startswith(
        "public.book: capetown: canceling statement due to lock timeout; public.book is held by"
    )
    assert f"process {process} (user postgres, application nightly, since" in message
    sites.settle()
    assert sites.equal


def test_a_link_of_one_table_fails_with_the_same_words_and_is_tried_again(pair: MakePair) -> None:
    sites = pair(BOOK)
    sites.london.run("INSERT INTO book VALUES (1, 'A')")
    with (
        held(sites.capetown, "LOCK TABLE book IN SHARE MODE") as process,
        pytest.raises(
            WriteContended, match=rf"public\.book is held by process {process} .*End that transaction"
        ),
    ):
        sites.run()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DROP TABLE book CASCADE", "public.book: capetown cannot write it: relation"),
        (
            "ALTER TABLE book ALTER title TYPE varchar(9)",
            "capetown: public.book: the columns were altered while rows were on their way",
        ),
    ],
)
def test_a_table_that_is_altered_while_rows_are_on_their_way_stops_itself(
    pair: MakePair, statement: str, said: str
) -> None:
    sites = edited(pair(BOOK, *OTHERS))
    message = stopped(sites, at=At("hold_fence", lambda: sites.capetown.run(statement)))
    assert message.startswith(said)
    assert sites.capetown.rows("SELECT name FROM shop") == [("two",)]


def test_a_foreign_key_that_cannot_be_repaired_stops_its_table(pair: MakePair) -> None:
    """A child's constraint fails once its reference becomes NULL: no row of it was on its way."""
    child = "CREATE TABLE child (id int PRIMARY KEY, book int REFERENCES book ON DELETE SET NULL, title text"
    sites = pair(*FUNCTIONS, BOOK, f"{child} CHECK (inner_pl(title) <> ''))", *OTHERS)
    edited(sites)
    sites.settle()
    sites.capetown.as_application("INSERT INTO child VALUES (1, 1, 'A')")
    sites.london.run("DELETE FROM book", "UPDATE shop SET name = 'three'")
    message = stopped(sites)
    assert message.startswith("public.book: capetown cannot write it: function norm(text) does not exist")
    assert "SET search_path" in message
    assert sites.capetown.rows("SELECT name FROM shop") == [("three",)]
    for site in sites.sites:
        site.run("ALTER FUNCTION inner_pl(text) SET search_path = public")
    sites.settle()
    assert sites.equal
