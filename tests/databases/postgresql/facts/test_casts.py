"""The owner of a type can give it casts: what these run never gets the rights of another login."""

import psycopg
import pytest
from psycopg import sql

from concord.databases import provisioning
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.postgresql.rows.content import content
from concord.databases.postgresql.sites.ends import Source
from concord.messages.errors import ProvisioningRefused, StructureChanged
from concord.rules.policy import Policy
from embedded.postgres import Server
from tests.given.at_step import At
from tests.given.bare_sites import Bare
from tests.given.fixtures import Copies
from tests.given.site import PASSWORD, Site, every_table, make_tables, provision_site
from tests.given.two_sites import Pair

#: Owns a type, and wants more.
MALLORY = "an_owner_of_types"

#: Whoever runs what Mallory wrote leaves a name in app.loot.
PERSON = (
    "CREATE SCHEMA app",
    f"GRANT USAGE, CREATE ON SCHEMA app TO {MALLORY}",
    f"SET ROLE {MALLORY}",
    "CREATE TYPE app.mood AS ENUM ('glad', 'sad')",
    "CREATE DOMAIN app.temper AS app.mood",
    "RESET ROLE",
    "CREATE TABLE app.person (id int PRIMARY KEY, mood app.mood, moods app.mood[], temper app.temper)",
    "INSERT INTO app.person VALUES (1, 'glad', '{glad,NULL}', 'glad'), (2, NULL, NULL, NULL)",
    "CREATE TABLE app.loot (who name DEFAULT current_user)",
    "GRANT INSERT ON app.loot TO PUBLIC",
    "GRANT USAGE ON SCHEMA app TO PUBLIC",
)
_BODY = "LANGUAGE plpgsql AS $$BEGIN INSERT INTO app.loot DEFAULT VALUES; RETURN {}; END$$"
#: Each cast, and the function that it calls: its signature, and what it does.
CASTS = {
    "(app.mood AS text)": ("app.told(app.mood)", "RETURNS text", "'glad'"),
    "(app.mood[] AS text)": ("app.told(app.mood[])", "RETURNS text", "'{glad}'"),
    "(text AS app.mood)": ("app.read(text)", "RETURNS app.mood", "'sad'"),
    "(text AS app.mood[])": ("app.all_read(text)", "RETURNS app.mood[]", "'{sad}'"),
}


def give(site: Site, cast: str, owner: str = MALLORY) -> None:
    """The owner of the type gives it a cast."""
    function, returns, value = CASTS[cast]
    site.run(
        f"SET ROLE {owner}",
        f"CREATE FUNCTION {function} {returns} {_BODY.format(value)}",
        f"CREATE CAST {cast} WITH FUNCTION {function}",
        "RESET ROLE",
    )


def loot(site: Site) -> set[str]:
    return {who for (who,) in site.rows("SELECT who FROM app.loot")}


@pytest.fixture(scope="module", autouse=True)
def _mallory(server_with_logins: Server) -> None:
    with psycopg.connect(server_with_logins.uri("postgres"), autocommit=True) as superuser:
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        superuser.execute(create.format(sql.Identifier(MALLORY), sql.Literal(PASSWORD)))


@pytest.fixture
def bare(sites: Bare) -> Bare:
    for site in sites.sites:
        make_tables(site, PERSON)
    return sites


@pytest.fixture
def people(bare: Bare, request: pytest.FixtureRequest) -> Pair:
    """Both sites, of which Concord carries the table of people."""
    tables = tuple(table for table in every_table(bare.london) if table.name == "app.person")
    for site in bare.sites:
        provision_site(site, tables)
    pair = Pair(bare.london, bare.capetown, tables, lambda: request.getfixturevalue("spark"))
    declare_equal(pair.job())
    return pair


def refused(bare: Bare) -> list[str]:
    (person,) = (table for table in every_table(bare.london) if table.name == "app.person")
    with pytest.raises(ProvisioningRefused) as error:
        provisioning.provision(bare.installations([person]))
    return list(error.value.facts["problems"])  # type: ignore[call-overload]


def test_a_before_image_runs_no_cast_of_a_types_owner(people: Pair) -> None:
    """The trigger runs with the rights of the owner of its function, whoever edits the row."""
    london = people.london
    merged = people.tables[0].model_copy(update={"policy": Policy(resolvers=("merge_columns",))})
    provision_site(london, [merged])
    for cast in CASTS:
        give(london, cast)

    london.as_application("UPDATE app.person SET mood = 'sad', moods = '{sad}', temper = 'sad'")

    assert loot(london) == set()
    assert london.rows('SELECT base_row FROM concord."app.person" ORDER BY id') == [
        ({"id": "1", "mood": "glad", "moods": "{glad,NULL}", "temper": "glad"},),
        ({"id": "2", "mood": None, "moods": None, "temper": None},),
    ]


def test_a_cast_that_is_made_while_a_link_reads_is_not_run(people: Pair) -> None:
    source = Source(people.job())
    shapes, _ = source.inspect(people.tables)
    before = content(source.connection, shapes)
    for cast in CASTS:
        give(people.london, cast)

    assert (
        content(source.connection, shapes) == before
    )  # the reader's transaction is read-only: it would fail
    source.close()


@pytest.mark.parametrize("cast", CASTS)
def test_a_cast_stops_its_table_before_a_link_reads_or_writes_a_value(people: Pair, cast: str) -> None:
    london, capetown = people.sites
    london.run("UPDATE app.person SET mood = 'sad', moods = '{sad}' WHERE id = 1")
    give(capetown, cast)

    with pytest.raises(StructureChanged) as stopped:
        people.run()

    assert f"capetown: app.person has the column mood{'s' * ('[]' in cast)} of type app.mood" in str(
        stopped.value
    )
    assert f"DROP CAST {cast}" in str(stopped.value)
    assert loot(capetown) == set()
    capetown.run(f"DROP CAST {cast}")
    people.run()
    assert people.equal


@pytest.mark.parametrize("cast", ["(text AS app.mood)", "(text AS app.mood[])"])
def test_a_cast_that_is_made_while_rows_are_on_their_way_stops_their_write(people: Pair, cast: str) -> None:
    """Staged text becomes a value in the write's own transaction, which looks for casts once more."""
    london, capetown = people.sites
    london.run("UPDATE app.person SET mood = 'sad', moods = '{sad}' WHERE id = 1")
    before = capetown.rows("TABLE app.person")

    with pytest.raises(StructureChanged) as stopped:
        people.run(at=At("lock", lambda: give(capetown, cast)))

    assert f"capetown: app.person has the cast {cast} WITH FUNCTION app." in str(stopped.value)
    assert "made while rows were on their way" in str(stopped.value)
    assert loot(capetown) == set()
    assert capetown.rows("TABLE app.person") == before
    capetown.run(f"DROP CAST {cast}")
    people.run()
    assert people.equal


def test_a_cast_that_is_made_while_a_table_is_read_leaves_it_to_the_next_run(people: Pair) -> None:
    london = people.london
    source = Source(people.job())
    shapes, _ = source.inspect(people.tables)
    assert source.altered_since(shapes) == {}
    give(london, "(app.mood AS text)")
    assert "london: app.person was altered while it was read" in source.altered_since(shapes)["app.person"]
    source.close()


@pytest.mark.parametrize("cast", CASTS)
def test_a_cast_is_refused_when_provisioning(bare: Bare, cast: str) -> None:
    give(bare.capetown, cast)
    problems = refused(bare)
    assert problems
    for problem in problems:
        assert problem.startswith("capetown: app.person has the column ")
        assert f"which has the cast {cast} WITH FUNCTION app." in problem
        assert problem.endswith(f"DROP CAST {cast}")


def test_a_cast_is_refused_whoever_wrote_its_function(bare: Bare) -> None:
    """It would also say what a value is: what one site sends need not be what the other reads."""
    give(bare.capetown, "(text AS app.mood)", owner=bare.capetown.superuser)
    assert len(refused(bare)) == 3  # of the column, of the array, of the domain


def test_a_cast_of_an_extension_is_no_somebodys_unless_its_owner_added_it(people: Pair) -> None:
    """citext, hstore and ltree bring casts; here it is an extension that every server has."""
    capetown = people.capetown
    give(capetown, "(text AS app.mood)", owner=capetown.superuser)
    capetown.run("ALTER EXTENSION plpgsql ADD FUNCTION app.read(text)")
    people.run()

    capetown.run(f"ALTER FUNCTION app.read(text) OWNER TO {MALLORY}")

    with pytest.raises(StructureChanged, match=r"which has the cast \(text AS app.mood\)"):
        people.run()
    capetown.run("ALTER EXTENSION plpgsql DROP FUNCTION app.read(text)")


def test_a_cast_without_a_function_is_what_happens_anyway(people: Pair) -> None:
    people.capetown.run("CREATE CAST (text AS app.mood) WITH INOUT AS ASSIGNMENT")
    people.run()
    assert people.equal


def test_a_snapshot_reads_and_writes_no_value_of_a_type_with_a_cast(copies: Copies) -> None:
    for site in copies.sites:
        site.run(*PERSON)
    copies.define("people", "non_incremental", "app.person", "app.copied")
    copies.provision()
    for site, cast in zip(copies.sites, ("(app.mood AS text)", "(text AS app.mood)"), strict=True):
        give(site, cast)
        with pytest.raises(
            StructureChanged, match=rf"{site.name}: app.\w+ has the column mood .* has the cast"
        ):
            copies.refresh("people")
        assert loot(site) == set()
        with pytest.raises(ProvisioningRefused, match="has the cast"):
            copies.provision()
        site.run(f"DROP CAST {cast}")
    copies.refresh("people")
    assert copies.capetown.rows("SELECT id, mood FROM app.copied ORDER BY id") == [(1, "glad"), (2, None)]


def test_a_cast_that_is_made_while_a_snapshot_is_on_its_way_stops_its_write(copies: Copies) -> None:
    for site in copies.sites:
        site.run(*PERSON)
    copies.define("people", "non_incremental", "app.person", "app.copied")
    copies.provision()
    with pytest.raises(StructureChanged, match=r"capetown: app.copied has the column mood .* DROP CAST"):
        copies.refresh("people", At("content", lambda: give(copies.capetown, "(text AS app.mood)")))
    assert loot(copies.capetown) == set()
    assert copies.capetown.rows("TABLE app.copied") == []
