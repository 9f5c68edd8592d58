"""A table that Concord cannot replicate exactly is refused by name, one line each, before anything is written (F84)."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from concord.databases import provisioning
from concord.databases.postgresql.provision import surveyed_site
from concord.messages.errors import ProvisioningRefused
from concord.tables.replication_set import ReplicatedTable, TableName
from embedded.postgres import Server
from tests.given.bare_sites import Bare
from tests.given.fixtures import site_on
from tests.given.site import Site

REFUSED = ReplicatedTable(table=TableName(schema_name="public", name="refused"))


@pytest.fixture(scope="module")
def two_databases(server_with_logins: Server) -> Iterator[Bare]:
    names = [f"refused_{os.urandom(6).hex()}" for _ in range(2)]
    for name in names:
        server_with_logins.create_database(name)
    both = Bare(
        *(site_on(server_with_logins, *each) for each in zip(("london", "capetown"), names, strict=True))
    )
    yield both
    for site, name in zip(both.sites, names, strict=True):
        site.connection.close()
        server_with_logins.drop_database(name)


@pytest.fixture
def bare(two_databases: Bare) -> Bare:
    two_databases.run(
        "DROP SCHEMA IF EXISTS public, concord, concord_staging CASCADE",
        "CREATE SCHEMA public",
        "GRANT USAGE ON SCHEMA public TO PUBLIC",
    )
    return two_databases


def problems(bare: Bare, table: ReplicatedTable = REFUSED, **changed: object) -> list[str]:
    """Provisioning's refusals; nothing may have been written then."""
    with pytest.raises(ProvisioningRefused) as refused:
        provisioning.provision(bare.installations([table], **changed))
    assert all(site.value("SELECT to_regnamespace('concord')") is None for site in bare.sites)
    assert all(
        f"  - {problem}" in refused.value.message.splitlines() for problem in refused.value.facts["problems"]
    )  # type: ignore[attr-defined]
    return list(refused.value.facts["problems"])  # type: ignore[call-overload]


def at_both(problem: str) -> list[str]:
    return [f"{site}: public.refused {problem}" for site in ("london", "capetown")]


TYPES = {
    "money": (),
    "regclass": (),
    "oid": (),
    "xid": (),
    "tid": (),
    "money[]": (),
    "address": ("CREATE TYPE address AS (street text, city text)",),
    "address[]": ("CREATE TYPE address AS (street text, city text)",),
    "home": ("CREATE TYPE address AS (street text)", "CREATE DOMAIN home AS address"),
    "price": ("CREATE DOMAIN price AS money",),
    "number_span": ("CREATE TYPE number_span AS RANGE (subtype = oid)",),
}


@pytest.mark.parametrize("kind", TYPES)
def test_a_column_of_a_type_that_does_not_round_trip(bare: Bare, kind: str) -> None:
    bare.run(*TYPES[kind], f"CREATE TABLE refused (id int PRIMARY KEY, v {kind})")
    named = f"public.{kind}" if TYPES[kind] else kind
    assert problems(bare) == at_both(f"has the column v of type {named}, which does not round-trip exactly")


def test_a_column_of_a_type_that_nobody_has_proven(bare: Bare) -> None:
    bare.run(
        "CREATE TYPE seg",
        "CREATE FUNCTION seg_in(cstring) RETURNS seg LANGUAGE internal IMMUTABLE STRICT AS 'textin'",
        "CREATE FUNCTION seg_out(seg) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout'",
        "CREATE TYPE seg (INPUT = seg_in, OUTPUT = seg_out)",
        "CREATE TABLE refused (id int PRIMARY KEY, v seg)",
    )
    assert problems(bare) == at_both(
        "has the column v of type public.seg, which Concord does not know, so that nothing says that its text is exact;"
        " leave the column out"
    )


CLOSED = "is not a plain table (a view, partition, partitioned or inheriting table); replicate plain tables"
TABLES = {
    "CREATE UNLOGGED TABLE refused (id int PRIMARY KEY)": (
        "is unlogged or temporary: a crash empties it; ALTER TABLE … SET LOGGED first",
    ),
    "CREATE TABLE refused (id int PRIMARY KEY) PARTITION BY RANGE (id)": (CLOSED,),
    "CREATE TABLE parent (id int); CREATE TABLE refused (PRIMARY KEY (id)) INHERITS (parent)": (CLOSED,),
    "CREATE TABLE refused (id int PRIMARY KEY); CREATE TABLE child () INHERITS (refused)": (CLOSED,),
    "CREATE TABLE refused (id int PRIMARY KEY); ALTER TABLE refused ENABLE ROW LEVEL SECURITY": (
        "has row-level security, which can hide rows from Concord and read as a mass delete; disable it",
    ),
    "CREATE TABLE refused (id int PRIMARY KEY); CREATE RULE quiet AS ON INSERT TO refused DO INSTEAD NOTHING": (
        "has the rule quiet, under which PostgreSQL refuses MERGE; drop it, or let a trigger do what it does",
    ),
    "CREATE TABLE refused (id int, EXCLUDE USING gist (span WITH &&) DEFERRABLE, span int4range, PRIMARY KEY (id))": (
        "has the deferrable exclusion constraint refused_span_excl; make it NOT DEFERRABLE",
    ),
    "CREATE TABLE refused (id int)": (
        "has no primary key; add one, or name a unique key in the configuration (key: [...])",
    ),
    "CREATE TABLE refused (id int PRIMARY KEY DEFERRABLE)": (
        "has no primary key; add one, or name a unique key in the configuration (key: [...])",
    ),
    "CREATE TABLE refused (id float8 PRIMARY KEY)": (
        "has the key column id of type double precision, which cannot identify a row exactly",
    ),
    "CREATE TABLE refused (id jsonb PRIMARY KEY)": (
        "has the key column id of type jsonb, which cannot identify a row exactly",
    ),
    "CREATE TABLE refused (id interval PRIMARY KEY)": (
        "has the key column id of type interval, which cannot identify a row exactly",
    ),
    "CREATE TABLE refused (id numrange PRIMARY KEY)": (
        "has the key column id of type numrange, which cannot identify a row exactly",
    ),
    "CREATE TABLE refused (id int[] PRIMARY KEY)": (
        "has the key column id of type integer[], which cannot identify a row exactly",
    ),
    "CREATE DOMAIN approximation AS float8; CREATE TABLE refused (id approximation PRIMARY KEY)": (
        "has the key column id of type public.approximation, which cannot identify a row exactly",
    ),
    "CREATE TABLE refused (a int, id int GENERATED ALWAYS AS (a + 1) STORED PRIMARY KEY)": (
        "has the generated key column id; choose a key that is stored",
    ),
    "CREATE TABLE refused (id int PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY)": (
        "has the column n GENERATED ALWAYS AS IDENTITY outside its key; use BY DEFAULT",
    ),
}


@pytest.mark.parametrize("ddl", TABLES)
def test_a_table_that_cannot_be_replicated_exactly(bare: Bare, ddl: str) -> None:
    bare.run(ddl)
    assert problems(bare) == [
        line
        for site in ("london", "capetown")
        for line in (f"{site}: public.refused {problem}" for problem in TABLES[ddl])
    ]


def test_a_key_under_a_nondeterministic_collation(bare: Bare) -> None:
    # F41; this server is built without ICU, so that such a collation must be forged
    bare.run(
        'CREATE COLLATION loose FROM "C"',
        "SET allow_system_table_mods = on",
        "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'loose'",
        "CREATE TABLE refused (id text COLLATE loose PRIMARY KEY)",
    )
    assert problems(bare) == at_both(
        "has the key column id under a nondeterministic collation; use a deterministic one"
    )


def test_a_declared_key_that_may_be_null_or_is_not_unique_or_is_not_there(bare: Bare) -> None:
    bare.run("CREATE TABLE refused (id int, code text UNIQUE, PRIMARY KEY (id))")
    assert problems(bare, REFUSED.model_copy(update={"key": ("code",)})) == at_both(
        "has the nullable key column code; set it NOT NULL"
    )
    bare.run("ALTER TABLE refused DROP CONSTRAINT refused_code_key")
    assert problems(bare, REFUSED.model_copy(update={"key": ("code",)})) == at_both(
        "has no immediate unique index on its key (code); create one"
    )
    assert problems(bare, REFUSED.model_copy(update={"key": ("kode",)})) == at_both(
        "has no column kode, which the configured key names"
    )


def test_a_table_that_is_not_there(bare: Bare) -> None:
    bare.london.run("CREATE TABLE refused (id int PRIMARY KEY)")
    assert problems(bare) == [
        "capetown: public.refused does not exist, or the installer may not see it;"
        " create it or correct its name"
    ]


def test_a_foreign_key_to_a_table_outside_the_set(bare: Bare) -> None:
    # S0-02
    bare.run(
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE refused (id int PRIMARY KEY, parent int REFERENCES parent)",
    )
    assert problems(bare) == [
        f"{site}: public.refused refers to public.parent (refused_parent_fkey), which is not in the replication set;"
        " add it, or drop the constraint"
        for site in ("london", "capetown")
    ]


def test_a_column_that_may_be_null_at_one_site_alone_is_a_notice(bare: Bare) -> None:
    bare.london.run("CREATE TABLE refused (id int PRIMARY KEY, v int, w int, x int NOT NULL)")
    bare.capetown.run("CREATE TABLE refused (id int PRIMARY KEY, v int NOT NULL, w int, x int NOT NULL)")
    assert provisioning.notices(bare.installations([REFUSED])) == [
        "public.refused: column v is NOT NULL at capetown and may be NULL at london: a row of london without it waits"
        " at capetown"
    ]


MOOD = "CREATE TYPE mood AS ENUM ({}); CREATE TABLE refused (id int PRIMARY KEY, v mood)"
LIMITED = "CREATE DOMAIN amount AS numeric(10,{}); CREATE TABLE refused (id int PRIMARY KEY, v amount)"
RANGED = "CREATE TYPE span AS RANGE (subtype = {}); CREATE TABLE refused (id int PRIMARY KEY, v span)"
DIFFERENT = [
    ("(id int PRIMARY KEY, v int)", "(id int PRIMARY KEY)", "column v exists at london but not at capetown"),
    ("(id int PRIMARY KEY)", "(id int PRIMARY KEY, v int)", "column v exists at capetown but not at london"),
    (
        "(id int PRIMARY KEY, v int)",
        "(id int PRIMARY KEY, v bigint)",
        "column v is integer at london and bigint at capetown",
    ),
    (
        "(id int PRIMARY KEY, v varchar(5))",
        "(id int PRIMARY KEY, v varchar(6))",
        "column v is character varying(5) at london and character varying(6) at capetown",
    ),
    (
        "(id int PRIMARY KEY, v int)",
        "(id int PRIMARY KEY, v int GENERATED ALWAYS AS (id) STORED)",
        "column v is generated at capetown and not at london",
    ),
    (
        MOOD.format("'a', 'b'"),
        MOOD.format("'b', 'a'"),
        "column v is public.mood at both, with other labels: 'a', 'b' at london; 'b', 'a' at capetown; give the type"
        " the same labels in the same order",
    ),
    (
        LIMITED.format(2),
        LIMITED.format(4),
        "column v is public.amount at both, and that is amount(655366)/numeric:-1 at london and"
        " amount(655368)/numeric:-1 at capetown",
    ),
    (
        RANGED.format("int4"),
        RANGED.format("int8"),
        "column v is public.span at both, and that is span/int4:-1 at london and span/int8:-1 at capetown",
    ),
    (
        "(id int PRIMARY KEY, v int NOT NULL)",
        "(id int, v int PRIMARY KEY)",
        "the key differs between london and capetown",
    ),
]


@pytest.mark.parametrize(("here", "there", "problem"), DIFFERENT)
def test_a_table_that_differs_between_the_sites(bare: Bare, here: str, there: str, problem: str) -> None:
    # F86
    for site, ddl in zip(bare.sites, (here, there), strict=True):
        site.run(ddl if ddl.startswith("CREATE") else f"CREATE TABLE refused {ddl}")
    assert problems(bare) == [f"public.refused: {problem}"]


def test_clocks_too_far_apart(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    # S1-27, F13: the controller's clock jumps between the two looks, as if one site's clock were wrong
    bare.run("CREATE TABLE refused (id int PRIMARY KEY)")
    looks = iter([1_000_000_000.0, 1_000_000_090.0])
    monkeypatch.setattr(surveyed_site.time, "time", lambda: next(looks))
    assert problems(bare) == [
        "the clocks of london and capetown are 90 s apart, more than max_clock_skew (60 s); synchronize them with NTP"
    ]


def test_two_sites_that_are_one_database(bare: Bare) -> None:
    bare.london.run("CREATE TABLE refused (id int PRIMARY KEY)")
    twin = Site(
        "capetown",
        *(getattr(bare.london, name) for name in ("host", "port", "database", "superuser", "password")),
    )
    assert problems(Bare(bare.london, twin)) == [
        "london and capetown are the same database; give each site its own"
    ]
    twin.connection.close()


def test_a_database_that_is_another_site_already(bare: Bare) -> None:
    bare.run("CREATE TABLE refused (id int PRIMARY KEY)")
    provisioning.provision(bare.installations([REFUSED]))
    bare.london.name, bare.capetown.name = bare.capetown.name, bare.london.name
    with pytest.raises(ProvisioningRefused) as refused:
        provisioning.provision(bare.installations([REFUSED]))
    assert refused.value.facts["problems"] == tuple(
        f"{mine}: the database is already the site '{other}'; correct the connection, or remove that site first"
        for mine, other in (("capetown", "london"), ("london", "capetown"))
    )
    bare.london.name, bare.capetown.name = bare.capetown.name, bare.london.name


def test_a_login_that_is_not_there_or_may_not_log_in(bare: Bare) -> None:
    bare.run("CREATE TABLE refused (id int PRIMARY KEY)")
    assert problems(bare, reader="nobody's \"reader", applier="pg_read_all_data") == [
        f"{site}: there is no login {login}; CREATE ROLE {quoted} LOGIN PASSWORD '…' first"
        for site in ("london", "capetown")
        for login, quoted in (
            ("nobody's \"reader", '"nobody\'s ""reader"'),
            ("pg_read_all_data", '"pg_read_all_data"'),
        )
    ]


def test_every_problem_of_every_table_is_named_at_once(bare: Bare) -> None:
    bare.run(
        "CREATE TABLE refused (id float8 PRIMARY KEY, v money, w oid)",
        "ALTER TABLE refused ENABLE ROW LEVEL SECURITY",
    )
    assert len(problems(bare)) == 8


def test_an_installer_without_the_right_to_provision_is_told_what_to_do(bare: Bare) -> None:
    bare.run("CREATE TABLE refused (id int PRIMARY KEY)")
    installations = [
        replace(each, installer=site.credentials("an_application"))
        for each, site in zip(bare.installations([REFUSED]), bare.sites, strict=True)
    ]
    with pytest.raises(
        ProvisioningRefused,
        match=r"(?s)nothing was written.*london: an_application cannot make the role .*`provision --print-sql`",
    ):
        provisioning.provision(installations)
