"""Functions that run with the rights of the role that owns Concord's tables. Every name in them is Concord's or
PostgreSQL's, whatever the session that calls them has."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from concord.databases import provisioning
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.sites import owner
from concord.jobs.replication import Capture, ReplicationDefinition
from concord.rules.policy import Policy
from concord.tables.privacy import Treatment
from concord.tables.replication_set import ReplicatedTable, TableName
from tests.given.bare_sites import Bare
from tests.given.site import LOG_READER, Site

CAPTURED = ("by_statement", "by_row", "some_columns", "called", "recorded")
TABLES = (
    "CREATE SCHEMA app",
    "GRANT USAGE ON SCHEMA app TO PUBLIC",
    *(
        f"CREATE TABLE app.{name} (id int, part text, note text, version uuid, PRIMARY KEY (id, part))"
        for name in CAPTURED
    ),
    *(f"GRANT ALL ON app.{name} TO PUBLIC" for name in CAPTURED),
    "CREATE PROCEDURE app.act(n int) LANGUAGE sql AS ''",
)


@dataclass(frozen=True)
class Function:
    """One of Concord's, as the catalogue has it."""

    name: str
    definer: bool
    owner: str
    settings: Sequence[str]
    public: bool  #: everybody may call it
    source: str  #: empty where its names were looked up when it was made


def tables() -> tuple[ReplicatedTable, ...]:
    """One of each kind of capture by triggers."""
    plain, by_row, some = (
        ReplicatedTable(table=TableName(schema_name="app", name=name)) for name in CAPTURED[:3]
    )
    return (
        plain.model_copy(update={"private": {"note": Treatment.HASHED}}),
        by_row.model_copy(update={"policy": Policy(resolvers=("merge_columns",))}),
        some.model_copy(update={"columns": ("id", "part", "note")}),
    )


def replications(sites: Bare) -> tuple[ReplicationDefinition, ...]:
    """One whose calls travel, and one that triggers record."""
    called, recorded = (
        (ReplicatedTable(table=TableName(schema_name="app", name=name)),) for name in CAPTURED[3:]
    )
    ends = {"publisher": sites.london.name, "subscriber": sites.capetown.name}
    act = (TableName(schema_name="app", name="act"),)
    return (
        ReplicationDefinition(name="c", replication_set="c", tables=called, procedures=act, **ends),
        ReplicationDefinition(
            name="r", replication_set="r", tables=recorded, capture=Capture.TRIGGERS, **ends
        ),
    )


@pytest.fixture
def london(sites: Bare) -> Iterator[Site]:
    """A site at which Concord does all that it can."""
    sites.run(*TABLES)
    more = {"replications": replications(sites), "log_reader": LOG_READER}
    wanted = [
        replace(each, announced=frozenset({"app.by_statement"}))
        for each in sites.installations(tables(), **more)
    ]
    provisioning.provision(wanted)
    yield sites.london
    for site in sites.sites:
        site.drop_slots()


def functions(site: Site) -> list[Function]:
    found = site.rows(
        "SELECT p.oid::regprocedure::text, p.prosecdef, p.proowner::regrole::text, coalesce(p.proconfig, '{}'),"
        " EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0),"
        " CASE WHEN p.prosqlbody IS NULL THEN p.prosrc ELSE '' END"
        " FROM pg_proc p WHERE p.pronamespace = 'concord'::regnamespace ORDER BY 1"
    )
    return [Function(*each) for each in found]


#: Words before a bracket that are no functions, and before a name that is no relation.
SYNTAX = frozenset(
    re.findall(
        r"\w+",
        "all and any array as by case check coalesce conflict declare else elsif exists extract filter from greatest if"
        " in into join key least materialized not null nullif on only or over record return returning row rows select"
        " set strict table then using values when where with",
    )
)
NAME = r'(?:"[^"]+"|[a-z_]\w*)(?:\.(?:"[^"]+"|[a-z_]\w*))*'
RELATION = re.compile(rf"(?<!distinct )\b(?:from|join|into|update|only|table)\s+({NAME})(\(?)", re.IGNORECASE)
CALL = re.compile(rf"(?<![\w.\"$])({NAME})\s*\(", re.IGNORECASE)
TYPE = re.compile(rf"::\s*({NAME})", re.IGNORECASE)
LITERAL = re.compile(r"(?<![eE])'(?:[^']|'')*'|\b[eE]'(?:[^'\\]|''|\\.)*'")
#: A name that a statement gives to a relation, before the names of its columns or what it is.
ALIAS = re.compile(r"\b(\w+) AS (?:MATERIALIZED )?\(|(?:\bAS|\)|ORDINALITY) (\w+)\s*\(")
VARIABLE = re.compile(r"(\w+) (\w+)(?:\[\])?(?: :=[^;]*)?;")
#: The relations of a statement's trigger.
TRANSITION = frozenset({"old_rows", "new_rows"})


def without_literals(source: str) -> str:
    """The code of a body, without its comments and constants."""
    return re.sub(rf"{LITERAL.pattern}|--[^\n]*", "''", source)


def strangers(site: Site, function: Function) -> list[str]:
    """The names in a body that are neither qualified nor PostgreSQL's."""
    code = without_literals(function.source)
    variables = VARIABLE.findall(code.partition("BEGIN")[0])
    own = {name for found in ALIAS.findall(code) for name in found} | {name for name, _ in variables}
    relations = {name for name, bracket in RELATION.findall(code) if not bracket}
    catalogued = {
        "to_regclass('pg_catalog.' || {})": relations - TRANSITION - own,
        "(SELECT min(oid) FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = {})": {
            *CALL.findall(code)
        }
        - own,
        "(SELECT oid FROM pg_type WHERE oid = to_regtype({}) AND typnamespace = 'pg_catalog'::regnamespace)": {
            *TYPE.findall(code),
            *(kind for _, kind in variables),
        },
    }
    return [
        name
        for known, names in catalogued.items()
        for name in sorted(names)
        if "." not in name and name.lower() not in SYNTAX
        if site.value(f"SELECT {known.format(literal(name.lower()))} IS NULL")
    ]


def schemas(function: Function) -> set[str]:
    """Those of the relations and functions that a body names."""
    code = without_literals(function.source)
    relations = (name for name, _ in RELATION.findall(code))
    names = {*relations, *CALL.findall(code), *TYPE.findall(code)}
    return {name.partition(".")[0].strip('"') for name in names if "." in name}


def test_each_function_of_concords_owner_names_nothing_that_is_another_logins(london: Site) -> None:
    made = functions(london)
    role = owner.role(london.database)
    assert {each.name.split("(")[0].split(" ")[0] for each in made if each.definer} == {
        *(f'concord."{what}' for what in ("capture", "insert", "update", "delete", "notify")),
        *(f"concord.{what}" for what in ("keep_operation", "withhold_private", "purge_conflicts")),
        *("concord.mark_call", "concord.end_call"),
    }
    for each in made:
        assert each.owner == role, each.name
        if not each.source:
            continue  # PostgreSQL looked its names up when it was made
        paths = [setting for setting in each.settings if setting.startswith("search_path=")]
        assert paths == ["search_path=pg_catalog, pg_temp"], each.name
        assert strangers(london, each) == [], (each.name, each.source)
        assert schemas(each) <= {"concord", "pg_catalog", "app"}, each.name
        assert "\\" not in LITERAL.sub(lambda it: it[0] if it[0][0] == "'" else "", each.source), each.name
    # These two ask who has called them.
    callable_ones = {each.name.split("(")[0] for each in made if each.definer and each.public}
    assert callable_ones == {"concord.mark_call", "concord.end_call"}


#: Twins, in the session's own schema, of the functions that bodies call, as far as a user may declare such ones.
TWINS = """
SELECT format('CREATE FUNCTION pg_temp.%I(%s) RETURNS %s LANGUAGE plpgsql AS $$ BEGIN INSERT INTO app.loot VALUES'
              ' (current_user, %L); RETURN NULL; END $$', proname, oidvectortypes(proargtypes), prorettype::regtype,
              oid::regprocedure)
  FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY ({names}) AND prokind = 'f'
   AND NOT proretset AND provariadic = 0 AND 'internal'::regtype <> ALL (proargtypes)
   AND NOT EXISTS (SELECT FROM pg_type WHERE typtype = 'p' AND oid = ANY (array_append(proargtypes, prorettype)))"""
#: Twins of the operators.
OPERATORS = """
SELECT format('CREATE FUNCTION pg_temp.twin_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS $$ BEGIN INSERT INTO app.loot'
              ' VALUES (current_user, %L); RETURN NULL; END $$;'
              ' CREATE OPERATOR pg_temp.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = pg_temp.twin_%s)',
              oid, l, r, oprresult::regtype, oid::regoperator, oprname, l, r, oid)
  FROM pg_operator CROSS JOIN LATERAL (SELECT oprleft::regtype AS l, oprright::regtype AS r) x
 WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprcode <> 0 AND l::oid = ANY ('{kinds}'::regtype[]::oid[])
   AND r::oid = ANY ('{kinds}'::regtype[]::oid[]) AND oprname !~ '[~]'"""
KINDS = "{bool,int4,int8,text,jsonb,oid,xid8,timestamptz,interval}"


def test_what_a_session_has_under_postgresqls_names_is_never_called(london: Site) -> None:
    """Functions and operators, relations and types: pg_temp comes last in a path, and has no functions at all there."""
    called = {name for each in functions(london) for name in CALL.findall(without_literals(each.source))}
    names = "ARRAY[" + ", ".join(literal(name.lower()) for name in sorted(called)) + "]"
    twins = [*london.rows(TWINS.format(names=names)), *london.rows(OPERATORS.replace("{kinds}", KINDS))]
    assert len(twins) > 100
    london.run("CREATE TABLE app.loot (who name, by text)", "GRANT INSERT ON app.loot TO PUBLIC")
    london.as_application(
        "SET search_path = pg_temp, pg_catalog",
        *(f"CREATE TABLE pg_temp.{name} ()" for name in ("site", "pg_attribute", "old_rows", "new_rows")),
        *(f"CREATE DOMAIN pg_temp.{name} AS pg_catalog.int4" for name in ("regtype", "jsonb", "text", "oid")),
        *(twin for (twin,) in twins),
        *(
            f"{write} app.{table} {rest}"
            for table in CAPTURED
            for write, rest in (
                ("INSERT INTO", "VALUES (1, 'a', 'b'), (2, 'a', 'b')"),
                ("UPDATE", "SET note = 'new'"),
                ("UPDATE", "SET part = 'other'"),
                ("DELETE FROM", ""),
                ("INSERT INTO", "VALUES (1, 'a', 'b')"),
            )
        ),
    )
    assert london.rows("TABLE app.loot") == []
    assert len(london.rows('TABLE concord."app.by_row"')) == 4
    assert len(london.rows("TABLE concord.operation")) == 9
