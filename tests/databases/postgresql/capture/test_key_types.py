"""The owner of a captured table or of a type alters what it is made of, so that a conversion would run her code. None
runs with the rights of the role that owns Concord's tables."""

from contextlib import suppress
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql

from concord.rules.policy import Policy
from embedded.postgres import Server
from tests.given.bare_sites import Bare
from tests.given.site import APPLICATION, PASSWORD, Site, every_table, make_tables, provision_site

#: Owns the table and its types, and wants more.
MALLORY = "an_owner_of_a_table"

#: Whoever runs what Mallory wrote leaves a name in app.loot.
SCHEMA = (
    "CREATE SCHEMA app",
    f"GRANT USAGE, CREATE ON SCHEMA app TO {MALLORY}",
    "GRANT USAGE ON SCHEMA app TO PUBLIC",
    "CREATE TABLE app.loot (who name DEFAULT current_user)",
    "GRANT INSERT ON app.loot TO PUBLIC",
)


def stealing(argument: str, result: str, value: str) -> str:
    """Her function."""
    return (
        f"CREATE FUNCTION app.steal({argument}) RETURNS {result} LANGUAGE plpgsql AS"
        f" $$BEGIN INSERT INTO app.loot DEFAULT VALUES; RETURN {value}; END$$"
    )


def cast(of: str, to: str = "integer", value: str = "7", kind: str = "AS ASSIGNMENT") -> tuple[str, str]:
    """A cast of her type that calls her function."""
    return stealing(of, to, value), f"CREATE CAST ({of} AS {to}) WITH FUNCTION app.steal({of}) {kind}"


def altered(to: str, value: str) -> str:
    return f"ALTER TABLE app.person ALTER id TYPE {to} USING {value}"


MOOD = "CREATE TYPE app.mood AS ENUM ('glad', 'sad')"
MOODS = "CREATE TYPE app.moods AS RANGE (subtype = app.mood)"
CHECKED = ("CREATE DOMAIN app.code AS text", stealing("text", "boolean", "true"))


@dataclass(frozen=True)
class Attack:
    """The key when Concord comes, and her statements after that."""

    key: str
    then: tuple[str, ...]
    before: tuple[str, ...] = ()


ATTACKS = {
    "an enum": Attack("integer", (MOOD, *cast("app.mood"), altered("app.mood", "'glad'"))),
    "an enum that is converted in expressions": Attack(
        "integer", (MOOD, *cast("app.mood", kind="AS IMPLICIT"), altered("app.mood", "'glad'"))
    ),
    "a domain over an enum": Attack(
        "integer",
        (
            MOOD,
            "CREATE DOMAIN app.temper AS app.mood",
            *cast("app.mood"),
            altered("app.temper", "'glad'"),
        ),
    ),
    "an array of an enum": Attack(
        "integer", (MOOD, *cast("app.mood[]"), altered("app.mood[]", "ARRAY['glad']::app.mood[]"))
    ),
    "a composite": Attack(
        "integer",
        (
            "CREATE TYPE app.pair AS (one int, other int)",
            *cast("app.pair"),
            altered("app.pair", "ROW(1, 2)::app.pair"),
        ),
    ),
    "a row of her table": Attack(
        "integer",
        (
            "CREATE TABLE app.pair (one int)",
            *cast("app.pair", kind="AS IMPLICIT"),
            altered("app.pair", "ROW(1)::app.pair"),
        ),
    ),
    "a range": Attack(
        "integer", (MOOD, MOODS, *cast("app.moods"), altered("app.moods", "'[glad,sad]'::app.moods"))
    ),
    "a multirange": Attack(
        "integer",
        (
            MOOD,
            MOODS,
            *cast("app.moods_multirange"),
            altered("app.moods_multirange", "'{[glad,sad]}'::app.moods_multirange"),
        ),
    ),
    "a column in the key's place": Attack(
        "integer",
        (
            MOOD,
            *cast("app.mood"),
            "ALTER TABLE app.person ADD mood app.mood DEFAULT 'glad'",
            "ALTER TABLE app.person RENAME id TO was",
            "ALTER TABLE app.person RENAME mood TO id",
        ),
    ),
    "a type in the other's place": Attack(
        "app.mood",
        (
            "ALTER TYPE app.mood RENAME TO old_mood",
            MOOD,
            *cast("app.mood", "app.old_mood", "'glad'"),
            altered("app.mood", "'glad'"),
        ),
        (MOOD,),
    ),
    "the type that a domain with a check is of": Attack(
        "app.code",
        (altered("text", "id"), "ALTER DOMAIN app.code ADD CHECK (app.steal(VALUE))"),
        CHECKED,
    ),
    "a domain with a check over the key's type": Attack(
        "text",
        (
            *CHECKED,
            "ALTER DOMAIN app.code ADD CHECK (app.steal(VALUE))",
            "CREATE TYPE app.pair AS (one app.code)",
            *cast("app.pair", "text", "'x'"),
            altered("app.pair", "ROW('x')::app.pair"),
        ),
    ),
}
FIRST_KEY = {"integer": "1", "app.mood": "glad", "app.code": "x", "text": "x"}

#: Each kind of statement, and each plan that capture has for it.
WRITES = (
    "INSERT INTO app.person TABLE app.spare",
    "UPDATE app.person SET note = 'new' WHERE note = ''",
    "UPDATE app.person SET note = note || 'er'",
    "DELETE FROM app.person",
)
REFUSED = r"the key of table app\.person \(id\) is not of the type that it had when Concord was provisioned"


@pytest.fixture(scope="module", autouse=True)
def _mallory(server_with_logins: Server) -> None:
    with psycopg.connect(server_with_logins.uri("postgres"), autocommit=True) as superuser:
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        superuser.execute(create.format(sql.Identifier(MALLORY), sql.Literal(PASSWORD)))


def by_mallory(site: Site, *statements: str) -> None:
    with site.log_in(MALLORY) as session:
        for statement in statements:
            session.execute(statement.encode())


def captured(sites: Bare, key: str, *before: str, rows: str, by_row: bool = False, columns: str = "") -> Site:
    """Her table at a provisioned site."""
    site = sites.london
    made = f"CREATE TABLE app.person (id {key} PRIMARY KEY, note text{columns})"
    mine = (*before, made, f"INSERT INTO app.person VALUES {rows}")
    make_tables(site, (*SCHEMA, f"SET ROLE {MALLORY}", *mine, "RESET ROLE"))
    (person,) = (table for table in every_table(site) if table.name == "app.person")
    if by_row:
        person = person.model_copy(update={"policy": Policy(resolvers=("merge_columns",))})
    provision_site(site, [person])
    site.run("DELETE FROM app.loot")
    return site


def victims(site: Site) -> set[str]:
    """The roles with whose rights her code ran, but for the users who write her table."""
    site.run(f"DELETE FROM app.loot WHERE who IN ('{APPLICATION}', '{MALLORY}')")
    return {who for (who,) in site.rows("SELECT who FROM app.loot")}


@pytest.mark.parametrize("by_row", [False, True], ids=["by the statement", "by the row"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_key_of_another_type_runs_no_code_of_the_types_owner(
    sites: Bare, attack: str, by_row: bool
) -> None:
    it = ATTACKS[attack]
    london = captured(sites, it.key, *it.before, rows=f"('{FIRST_KEY[it.key]}', '')", by_row=by_row)
    by_mallory(
        london,
        *it.then,
        "ALTER TABLE app.person DROP CONSTRAINT IF EXISTS person_pkey",
        "CREATE TABLE app.spare AS TABLE app.person",
        "GRANT SELECT ON app.spare TO PUBLIC",
    )
    for write in WRITES:
        with pytest.raises(psycopg.errors.DatatypeMismatch, match=REFUSED):
            london.as_application(write)
    assert victims(london) == set()
    assert london.rows("SELECT note FROM app.person") == [("",)]
    assert london.rows('TABLE concord."app.person"') == []


@pytest.mark.parametrize(
    ("by_row", "words"), [(False, REFUSED), (True, "does not match")], ids=["by the statement", "by the row"]
)
def test_a_session_that_was_open_before_is_refused_and_goes_on(sites: Bare, by_row: bool, words: str) -> None:
    """Where each row is captured alone, the words are PostgreSQL's: ours would cost each row."""
    london = captured(sites, "integer", rows="(1, '')", by_row=by_row)
    update = b"UPDATE app.person SET note = note || 'er'"
    with london.log_in(APPLICATION) as session:
        session.execute(update)
        london.run("ALTER TABLE app.person ALTER id TYPE bigint")
        with pytest.raises(psycopg.errors.DatatypeMismatch, match=words):
            session.execute(update)
        london.run("ALTER TABLE app.person ALTER id TYPE integer")
        session.execute(update)
    assert london.rows("SELECT note FROM app.person") == [("erer",)]


def test_a_key_column_that_is_gone_is_refused_by_name(sites: Bare) -> None:
    london = captured(sites, "integer", rows="(1, '')")
    london.run("ALTER TABLE app.person RENAME id TO number")
    with pytest.raises(psycopg.errors.DatatypeMismatch, match=REFUSED):
        london.as_application("UPDATE app.person SET note = 'new'")


@pytest.mark.parametrize(
    "change",
    [
        'ALTER TABLE app.person ALTER id TYPE varchar(9) COLLATE "C"',
        "ALTER TABLE app.person ALTER id TYPE varchar(20)",
        "ALTER TABLE app.person ALTER id TYPE varchar",
    ],
)
def test_a_key_of_the_same_type_is_captured_whatever_its_collation_and_length(
    sites: Bare, change: str
) -> None:
    london = captured(sites, "varchar(9)", rows="('x', '')")
    by_mallory(london, change)
    london.as_application("UPDATE app.person SET note = 'new'")
    assert london.rows('SELECT id, deleted FROM concord."app.person"') == [("x", False)]


def test_a_before_image_of_a_column_of_another_type_runs_no_cast(sites: Bare) -> None:
    """The edit itself is captured: the table's next run stops, and its users go on."""
    london = captured(sites, "integer", rows="(1, '', 5)", by_row=True, columns=", n int")
    by_mallory(
        london,
        MOOD,
        *cast("app.mood", "text", "'stolen'", kind=""),
        "ALTER TABLE app.person ALTER n TYPE app.mood USING 'glad'",
    )
    london.as_application("UPDATE app.person SET note = 'new'")
    assert victims(london) == set()
    assert london.rows('SELECT id, base_row FROM concord."app.person"') == [(1, None)]


@pytest.mark.parametrize("by_row", [False, True], ids=["by the statement", "by the row"])
def test_capture_runs_no_check_of_a_domain_that_the_key_is_of(sites: Bare, by_row: bool) -> None:
    """A value is checked where it becomes one of the domain, which a user's own statement does."""
    london = captured(sites, "app.code", *CHECKED, rows="('x', '')", by_row=by_row)
    by_mallory(london, "ALTER DOMAIN app.code ADD CHECK (app.steal(VALUE))")
    london.as_application(
        "INSERT INTO app.person VALUES ('y', ''), ('z', '')",
        "UPDATE app.person SET note = 'new' WHERE id = 'x'",
        "UPDATE app.person SET note = 'newer'",
        "UPDATE app.person SET id = id || '1'",
        "DELETE FROM app.person WHERE id = 'x1'",
        "INSERT INTO app.person VALUES ('x1', ''), ('x', '')",
        "DELETE FROM app.person",
    )
    assert victims(london) == set()
    assert len(london.rows('SELECT FROM concord."app.person" WHERE deleted')) == 6


@pytest.mark.parametrize("by_row", [False, True], ids=["by the statement", "by the row"])
@pytest.mark.parametrize("to", ["text", "integer", "boolean"])
@pytest.mark.parametrize(
    ("key", "of", "values"),
    [
        ("app.mood", "app.mood", ("glad", "sad")),
        ("app.moods", "app.moods", ("[glad,glad]", "[sad,sad]")),
        ("app.moods_multirange", "app.moods_multirange", ("{[glad,glad]}", "{[sad,sad]}")),
        ("app.stay", "app.span", ("[2026-01-01,2026-01-03)", "[2026-01-02,2026-01-05)")),
    ],
)
def test_an_operator_of_capture_runs_no_cast_of_the_keys_own_type(
    sites: Bare, key: str, of: str, values: tuple[str, str], to: str, by_row: bool
) -> None:
    """To compare two keys PostgreSQL finds its own operator, or none: the cast makes another one as good."""
    made = (
        MOOD,
        MOODS,
        "CREATE TYPE app.span AS RANGE (subtype = date)",
        "CREATE DOMAIN app.stay AS app.span",
    )
    london = captured(sites, key, *made, rows=f"('{values[0]}', '')", by_row=by_row)
    by_mallory(london, *cast(of, to, "NULL", "AS IMPLICIT"))
    for write in (
        "UPDATE app.person SET note = 'new'",
        f"UPDATE app.person SET id = '{values[1]}'",
        "DELETE FROM app.person",
        f"INSERT INTO app.person VALUES ('{values[0]}', ''), ('{values[1]}', '')",
        "UPDATE app.person SET note = 'new'",
        f"WITH gone AS (DELETE FROM app.person) INSERT INTO app.person VALUES ('{values[0]}', '')",
    ):
        with suppress(psycopg.errors.AmbiguousFunction, psycopg.errors.UniqueViolation):
            london.as_application(write)
    assert victims(london) == set()


def test_a_key_that_no_operator_compares_is_refused(sites: Bare) -> None:
    """PostgreSQL compares a domain over an enum by a cast alone."""
    with pytest.raises(
        AssertionError, match=r"key column id of type app\.temper, which cannot identify a row"
    ):
        captured(sites, "app.temper", MOOD, "CREATE DOMAIN app.temper AS app.mood", rows="('glad', '')")


def test_a_columns_name_is_no_code_where_a_session_takes_backslashes_for_escapes(sites: Bare) -> None:
    """PostgreSQL reads a function's body under the settings of the session that calls it."""
    name = r"x\',app.steal()]::text[]),null--"
    steal = stealing("", "text", "'stolen'")
    london = captured(sites, "integer", steal, rows="(1, '', '')", by_row=True, columns=f', "{name}" text')
    london.as_application("SET standard_conforming_strings = off", "UPDATE app.person SET note = 'new'")
    assert victims(london) == set()
    assert london.rows('SELECT base_row FROM concord."app.person"') == [({"id": "1", "note": "", name: ""},)]
