"""A table whose index, constraint, generated column, domain or rule fails stops itself, named with the remedy; the
others go on."""

import pytest

from concord.messages.errors import StructureChanged
from tests.given.failing_objects import BOOK, FUNCTIONS, INDEX_OF_SQL, OTHERS, TABLES
from tests.given.fixtures import MakePair
from tests.given.goes_on import goes_on
from tests.given.site import APPLIER, Site
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark


def _edit(site: Site) -> None:
    site.run("INSERT INTO book VALUES (1, 'A')", "UPDATE shop SET name = 'two'")


def _found(site: Site) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    return site.rows("SELECT id, title FROM book ORDER BY id"), site.rows("SELECT name FROM shop")


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        *((what, "pl") for what in TABLES),
        *((what, "sql") for what in TABLES if what not in ("index", "unique")),
    ],
)
def test_a_function_that_relies_on_search_path_stops_its_table_and_is_named(
    pair: MakePair, what: str, kind: str
) -> None:
    sites = pair(*FUNCTIONS, TABLES[what].format(kind=kind), *OTHERS)
    _edit(sites.london)

    report = sites.run()

    (stopped,) = [each.stopped for each in report.tables if each.stopped]
    assert stopped.startswith("public.book: capetown cannot write it: function norm(text) does not exist")
    assert f"ALTER FUNCTION public.inner_{kind}(text) SET search_path" in stopped.replace(
        f"ALTER FUNCTION inner_{kind} ", f"ALTER FUNCTION public.inner_{kind}(text) "
    )
    assert _found(sites.capetown) == ([], [("two",)])
    _mended(sites, f"ALTER FUNCTION inner_{kind}(text) SET search_path = public")


def _mended(sites: Pair, *statements: str) -> None:
    for site in sites.sites:
        site.run(*statements)
    sites.settle()
    assert _found(sites.capetown) == _found(sites.london) == ([(1, "A")], [("two",)])


@pytest.mark.parametrize("site", ["london", "capetown"])
def test_an_index_that_keeps_its_table_from_being_read_stops_that_table(pair: MakePair, site: str) -> None:
    """PostgreSQL looks into a function of SQL when it plans any statement about the table."""
    sites = pair(*FUNCTIONS, BOOK, *OTHERS)
    _edit(sites.london)
    at = getattr(sites, site)
    at.run(*INDEX_OF_SQL)

    report = sites.run()

    (stopped,) = [each.stopped for each in report.tables if each.stopped]
    assert stopped.startswith("public.book: ")
    assert "function norm(text) does not exist" in stopped
    assert "ALTER FUNCTION inner_sql SET search_path" in stopped
    assert _found(sites.capetown) == ([], [("two",)])
    _mended(sites, "ALTER FUNCTION inner_sql(text) SET search_path = public")


#: From PostgreSQL 17 on, a rule that is silent in a link's sessions does not keep them from a MERGE.
RULE = (
    "CREATE RULE quiet AS ON INSERT TO book WHERE NEW.id < 0 DO INSTEAD NOTHING",
    "ALTER TABLE book ENABLE ALWAYS RULE quiet",
)


def test_a_rule_stops_its_table_and_is_named(pair: MakePair) -> None:
    sites = pair(BOOK, *OTHERS)
    sites.capetown.run(*RULE)
    _edit(sites.london)

    report = sites.run()

    (stopped,) = [each.stopped for each in report.tables if each.stopped]
    assert stopped.startswith("public.book: capetown cannot write it: cannot execute MERGE")
    assert "drop it, or let a trigger do what it does" in stopped
    assert _found(sites.capetown) == ([], [("two",)])
    sites.capetown.run("DROP RULE quiet ON book")
    _mended(sites)


def test_a_table_alone_fails_its_run_with_the_same_words(pair: MakePair) -> None:
    sites = pair(BOOK)
    sites.capetown.run(*RULE)
    sites.london.run("INSERT INTO book VALUES (1, 'A')")
    with pytest.raises(
        StructureChanged, match=r"public\.book: capetown cannot write it: cannot execute MERGE"
    ):
        sites.run()


#: A CHECK by a function that fails for one word with the number `code`.
REFUSES_BAD = (
    "CREATE FUNCTION good(word text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN true; END$$",
    "CREATE TABLE book (id int PRIMARY KEY, title text CHECK (good(title)))",
)
FAILS = (
    "CREATE OR REPLACE FUNCTION good(word text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$BEGIN"
    " IF word = 'bad' THEN RAISE 'not this' USING ERRCODE = '{code}'; END IF; RETURN true; END$$"
)


def _failing_with(pair: MakePair, code: str) -> Pair:
    sites = pair(*REFUSES_BAD, f"GRANT EXECUTE ON FUNCTION good TO {APPLIER}", *OTHERS)
    sites.capetown.run(FAILS.format(code=code))
    sites.london.run("INSERT INTO book VALUES (1, 'bad'), (2, 'good')", "UPDATE shop SET name = 'two'")
    return sites


@pytest.mark.parametrize("code", ["AP001", "20000", "57014", "08006", "53100", "58030"])
def test_a_row_is_refused_by_whatever_number_a_function_chooses(pair: MakePair, code: str) -> None:
    """An application has error numbers of its own. Those of the server's state can be raised as well."""
    sites = _failing_with(pair, code)
    with goes_on():
        sites.run()
    assert _found(sites.capetown) == ([(2, "good")], [("two",)])
    assert sites.capetown.rows("SELECT reason FROM concord.waiting") == [("not this",)]


def test_a_function_whose_library_is_gone_stops_its_table(pair: MakePair) -> None:
    sites = _failing_with(pair, "21000")
    sites.capetown.run(
        "UPDATE pg_proc SET prolang = (SELECT oid FROM pg_language WHERE lanname = 'c'), probin = '$libdir/gone'"
        " WHERE proname = 'good'"
    )
    report = sites.run()
    (stopped,) = [each.stopped for each in report.tables if each.stopped]
    assert "could not access file" in stopped
    assert _found(sites.capetown) == ([], [("two",)])


@pytest.mark.parametrize("code", ["21000", "25006"])
def test_a_function_that_cannot_run_stops_its_table(pair: MakePair, code: str) -> None:
    """As one that writes."""
    sites = _failing_with(pair, code)
    report = sites.run()
    (stopped,) = [each.stopped for each in report.tables if each.stopped]
    assert stopped.startswith(
        f"public.book: capetown cannot write it: not this (SQLSTATE {code}). Mend the table"
    )
    assert _found(sites.capetown) == ([], [("two",)])
