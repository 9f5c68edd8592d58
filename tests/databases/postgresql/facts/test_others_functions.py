"""Functions that reads and writes of Concord's must run are named: their owners act with the rights of its logins."""

import pytest

from concord.databases import provisioning
from tests.given.bare_sites import Bare
from tests.given.fixtures import Copies
from tests.given.site import APPLICATION, Site

_POSITIVE = "LANGUAGE sql IMMUTABLE RETURN $1 > 0"

TABLES = (
    "CREATE SCHEMA app",
    f"GRANT USAGE, CREATE ON SCHEMA app TO {APPLICATION}",
    f"SET ROLE {APPLICATION}",
    f"CREATE FUNCTION app.positive(int) RETURNS boolean {_POSITIVE}",
    "CREATE FUNCTION app.half(int) RETURNS int LANGUAGE sql IMMUTABLE RETURN $1 / 2",
    "CREATE FUNCTION app.apart(int, int) RETURNS float8 LANGUAGE sql IMMUTABLE RETURN $1 - $2",
    "CREATE FUNCTION app.near(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN $1 - $2 < 9",
    "CREATE OPERATOR app.~~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = app.near)",
    "CREATE DOMAIN app.count AS int CHECK (app.positive(VALUE))",
    "CREATE TYPE app.span AS RANGE (SUBTYPE = int, SUBTYPE_DIFF = app.apart)",
    "RESET ROLE",
    f"CREATE FUNCTION app.mine(int) RETURNS boolean {_POSITIVE}",
    "CREATE TABLE public.plain (id int PRIMARY KEY CHECK (id > 0), v text DEFAULT lower('A'))",
    "CREATE INDEX ON public.plain (lower(v)) WHERE app.mine(id)",
)
#: The object that is made with the function, and how it is then named.
RUN = {
    "ALTER TABLE plain ADD CONSTRAINT \"c d\" CHECK (app.positive(id))": (
        'the constraint "c d"',
        "app.positive(integer)",
    ),
    "ALTER TABLE plain ADD CHECK (id OPERATOR(app.~~~) 3)": (
        "the constraint plain_id_check1",
        "app.near(integer,integer)",
    ),
    "ALTER TABLE plain ADD g int GENERATED ALWAYS AS (app.half(id)) STORED": ("the column g", "app.half(integer)"),
    "ALTER TABLE plain ADD d int DEFAULT app.half(4)": ("the column d", "app.half(integer)"),
    "ALTER TABLE plain ADD n app.count": ("the domain app.count", "app.positive(integer)"),
    "ALTER TABLE plain ADD n app.count[]": ("the domain app.count", "app.positive(integer)"),
    "ALTER TABLE plain ADD s app.span": ("the range type app.span", "app.apart(integer,integer)"),
    "CREATE INDEX i ON plain (app.half(id))": ("the index public.i", "app.half(integer)"),
    "CREATE INDEX i ON plain (id) WHERE app.positive(id)": ("the index public.i", "app.positive(integer)"),
    "CREATE STATISTICS public.st ON (app.half(id)) FROM plain": ("the statistics st", "app.half(integer)"),
    "CREATE RULE r AS ON INSERT TO plain DO ALSO SELECT app.half(1)": ("the rule r", "app.half(integer)"),
}  # fmt: skip


def notices(sites: Bare) -> list[str]:
    return provisioning.notices(sites.installations())


def line(site: Site, what: str, table: str = "public.plain") -> str:
    kind, function = RUN[what]
    return (
        f"{site.name}: {table}: {kind} runs {function} of {APPLICATION} when Concord's logins read or write;"
        f" trust {APPLICATION} as far as them"
    )


def test_functions_of_postgresqls_own_and_of_superusers_are_not_named(sites: Bare) -> None:
    sites.run(*TABLES)
    assert notices(sites) == []


@pytest.mark.parametrize("what", RUN)
def test_a_function_of_somebody_elses_is_named_with_what_runs_it_and_its_owner(
    sites: Bare, what: str
) -> None:
    sites.run(*TABLES)
    sites.capetown.run(what)
    assert notices(sites) == [line(sites.capetown, what)]
    assert not [each for each in provisioning.check(sites.installations()) if APPLICATION in each]


def test_the_functions_of_a_view_that_a_snapshot_reads_are_named_however_deep(copies: Copies) -> None:
    copies.london.run(
        *TABLES,
        "CREATE VIEW inner_view AS SELECT id, app.half(id) AS h FROM plain",
        "CREATE VIEW outer_view AS SELECT * FROM inner_view",
        "CREATE INDEX i ON plain (app.half(id))",
        "CREATE MATERIALIZED VIEW filled AS SELECT app.near(id, id) FROM plain",
        "CREATE OR REPLACE VIEW outer_view AS SELECT i.* FROM inner_view i, filled",
    )
    copies.define("halves", "non_incremental", "public.outer_view", "public.halves")
    said = f"of {APPLICATION} when Concord's logins read or write; trust {APPLICATION} as far as them"
    assert provisioning.notices(copies.installations()) == [
        f"london: public.outer_view: the index public.i runs app.half(integer) {said}",
        f"london: public.outer_view: the view public.inner_view runs app.half(integer) {said}",
    ]


#: Bodies, and whether the function finds a name of a user's schema by search_path.
BODIES = {
    "sql AS 'SELECT norm($1)'": True,
    "plpgsql AS 'BEGIN RETURN norm($1); END'": True,
    "plpgsql AS 'BEGIN RETURN (SELECT max(v) FROM words); END'": True,
    "plpgsql AS 'BEGIN RETURN $1::short; END'": True,
    "sql RETURN public.norm($1)": False,
    "sql AS 'SELECT public.norm($1)'": False,
    "plpgsql AS 'BEGIN RETURN lower($1); END'": False,
    "plpgsql SET search_path = public AS 'BEGIN RETURN norm($1); END'": False,
}


@pytest.mark.parametrize("body", BODIES)
def test_a_function_that_finds_names_by_search_path_is_named_with_the_remedy(sites: Bare, body: str) -> None:
    sites.run(
        "CREATE FUNCTION public.norm(text) RETURNS text LANGUAGE sql IMMUTABLE RETURN lower($1)",
        "CREATE DOMAIN public.short AS text",
        "CREATE TABLE public.words (id int PRIMARY KEY, v text)",
        f"CREATE FUNCTION public.made(text) RETURNS text IMMUTABLE LANGUAGE {body}",
        "CREATE TABLE public.book (id int PRIMARY KEY, title text)",
    )
    sites.capetown.run("ALTER TABLE book ADD CONSTRAINT named CHECK (made(title) <> '')")
    named = (
        "capetown: public.book: the constraint named runs public.made(text), which seems to find names by search_path;"
        " Concord's sessions have an empty one: ALTER FUNCTION public.made(text) SET search_path = …, or the table"
        " stops"
    )
    assert notices(sites) == ([named] if BODIES[body] else [])
