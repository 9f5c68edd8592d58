"""`provision --check` names each problem for which `provision` refuses, and neither writes anything then."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import SecretStr

from concord.databases import provisioning
from concord.databases.postgresql.sites import owner
from concord.databases.provisioning import Installation
from concord.jobs.replication import ReplicationDefinition
from concord.jobs.snapshot import SnapshotDefinition, SnapshotKind
from concord.messages.errors import ConcordError
from concord.rules.hook import Added, Hook
from concord.tables.identity import Identity
from concord.tables.privacy import Treatment
from concord.tables.replication_set import Marks, ReplicatedTable, TableName
from concord.values.identifier import parse_table_name
from embedded.postgres import Server
from tests.databases.postgresql.installers import new_installer, new_role
from tests.given.bare_sites import Bare
from tests.given.fixtures import site_on
from tests.given.site import APPLIER, LOG_READER, READER, create_logins

BOOK = "CREATE TABLE book (id int PRIMARY KEY, title text)"
NAME = TableName(schema_name="public", name="book")
WANTED = ReplicatedTable(table=NAME)
DEFINER = "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
LOGGED = WANTED.told_by_log(["london", "capetown"])


@dataclass(frozen=True)
class Asked:
    """Two sites, and the logins of an installer and an owner that a scenario may use."""

    bare: Bare
    installer: str
    owner: str

    def installations(self, table: ReplicatedTable = WANTED, **changed: object) -> list[Installation]:
        return self.bare.installations([table], **changed)

    def by_installer(self, table: ReplicatedTable = WANTED) -> list[Installation]:
        """An installer with the rights that a superuser's script would give, but for what a scenario takes."""
        return [
            replace(each, installer=site.credentials(self.installer))
            for each, site in zip(self.installations(table), self.bare.sites, strict=True)
        ]

    def by_log(self, **changed: Any) -> list[Installation]:
        return [
            replace(each, **{"log_reader": LOG_READER, "reads_log": site.credentials(LOG_READER)} | changed)
            for each, site in zip(self.installations(LOGGED), self.bare.sites, strict=True)
        ]

    def replicated(self, table: ReplicatedTable = WANTED, **changed: Any) -> list[Installation]:
        """Cape Town replays London's transactions."""
        settings = {"log_reader": LOG_READER} | {
            name: changed.pop(name) for name in ["log_reader"] if name in changed
        }
        definition = ReplicationDefinition(
            name="replayed",
            replication_set="books",
            publisher="london",
            subscriber="capetown",
            tables=(table,),
            **changed,
        )
        installations = self.bare.installations([table], replications=(definition,), **settings)
        return [replace(each, tables=()) for each in installations]

    def copied(self, **changed: Any) -> list[Installation]:
        """London's books are copied to Cape Town."""
        fields = {"relation": NAME, "table": parse_table_name("public.copy")} | changed
        copy = SnapshotDefinition(
            name="copy", kind=SnapshotKind.NON_INCREMENTAL, source="london", target="capetown", **fields
        )
        return [replace(each, tables=()) for each in self.bare.installations([WANTED], snapshots=(copy,))]


@dataclass(frozen=True)
class Scenario:
    """A refusal: part of its line, what spoils each site, and how provisioning is asked for."""

    said: str
    spoiled: tuple[str, ...] = (BOOK,)
    asked: Callable[[Asked], list[Installation]] = field(default=lambda asked: asked.installations())
    before: tuple[
        str, ...
    ] = ()  #: made before the sites are provisioned as they should be; then they are spoiled


def wanted(**changed: Any) -> Callable[[Asked], list[Installation]]:
    return lambda asked: asked.installations(ReplicatedTable(table=NAME, **changed))


def hooked() -> Hook:
    return Hook(
        call="some.hook:function", adds=(Added(table=parse_table_name("public.audit"), columns=("id",)),)
    )


#: What everybody must be given, so that a scenario lacks no more than it says.
ADMITTED = (
    BOOK,
    'ALTER TABLE book OWNER TO "{owner}"',
    'GRANT "{owner}" TO "{installer}"',
    "DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO \"{installer}\"', current_database()); END$$",
)

OF_LINKS: Mapping[str, Scenario] = {
    "a table that is not there": Scenario("public.book does not exist, or the installer may not see it", ()),
    "a table without a key": Scenario("public.book has no primary key", ("CREATE TABLE book (id int)",)),
    "a type that does not round-trip": Scenario(
        "which does not round-trip exactly", ("CREATE TABLE book (id int PRIMARY KEY, price money)",)
    ),
    "a parent outside of the set": Scenario(
        "public.book refers to public.author (book_author_fkey), which is not in the replication set",
        (
            "CREATE TABLE author (id int PRIMARY KEY)",
            "CREATE TABLE book (id int PRIMARY KEY, author int REFERENCES author)",
        ),
    ),
    "a filter whose constant is no value": Scenario(
        "public.book cannot be filtered by", asked=wanted(where="id = 'x'")
    ),
    "a mark without an index": Scenario(
        "has no index on the mark at",
        ("CREATE TABLE book (id int PRIMARY KEY, at timestamptz NOT NULL, gone boolean NOT NULL)",),
        wanted(tracking=Marks(changed_at="at", deleted="gone")),
    ),
    "a private column that is not there": Scenario(
        "has no column secret, which is to be private", asked=wanted(private={"secret": Treatment.DROPPED})
    ),
    "a hook that adds rows to no table": Scenario(
        "its hook adds rows to public.audit, which is not there",
        asked=wanted(hooks={"london": hooked(), "capetown": hooked()}),
    ),
    "a trigger that changes what links write": Scenario(
        "has the trigger spoil (BEFORE, ENABLE ALWAYS), which may change rows that Concord writes",
        (
            BOOK,
            DEFINER,
            "CREATE TRIGGER spoil BEFORE INSERT ON book FOR EACH ROW EXECUTE FUNCTION spoil()",
            "ALTER TABLE book ENABLE ALWAYS TRIGGER spoil",
        ),
    ),
    "a sequence that counts downwards": Scenario(
        "sequence public.book_id_seq counts downwards",
        ("CREATE TABLE book (id serial PRIMARY KEY)", "ALTER SEQUENCE book_id_seq INCREMENT BY -1"),
        lambda asked: asked.installations(
            WANTED.sharing(Identity(slots=2, slot={"london": 1, "capetown": 2}))
        ),
    ),
    "a login that is not there": Scenario(
        "there is no login nobody", asked=lambda asked: asked.installations(reader="nobody")
    ),
    "a key that was another one": Scenario(
        "the key of public.book was id when it was provisioned",
        ("ALTER TABLE book DROP CONSTRAINT book_pkey, ADD PRIMARY KEY (title)",),
        before=("CREATE TABLE book (id int PRIMARY KEY, title text NOT NULL)",),
    ),
    "a key that had another type": Scenario(
        "the key of public.book was of type integer when it was provisioned and is bigint now",
        ("ALTER TABLE book ALTER id TYPE bigint",),
        before=(BOOK,),
    ),
    "a configured key that is gone": Scenario(
        "public.book has no column title, which the configured key names",
        ("ALTER TABLE book DROP title",),
        wanted(key=("title",)),
        before=("CREATE TABLE book (id int PRIMARY KEY, title text NOT NULL UNIQUE)",),
    ),
    "changes that were found otherwise": Scenario(
        "the changes of public.book were found by triggers when it was provisioned",
        (),
        wanted(tracking=Marks(changed_at="at", deleted="gone")),
        before=(
            "CREATE TABLE book (id int PRIMARY KEY, at timestamptz NOT NULL, gone boolean NOT NULL)",
            "CREATE INDEX ON book (at)",
        ),
    ),
    "somebody else's objects in Concord's schema": Scenario(
        "belongs to {owner}, and the schemas concord and concord_staging are Concord's alone",
        ('ALTER TABLE concord.conflict OWNER TO "{owner}"',),
        before=(BOOK,),
    ),
    "an owner of Concord's objects that may log in": Scenario(
        "which is to own what Concord keeps, may log in", (BOOK, 'CREATE ROLE "{role}" LOGIN')
    ),
}

OF_RIGHTS: Mapping[str, Scenario] = {
    "an installer that may not act for the tables' owner": Scenario(
        "cannot make the role",
        (BOOK, 'ALTER TABLE book OWNER TO "{owner}"'),
        lambda asked: asked.by_installer(),
    ),
    "a table of a superuser": Scenario(
        "public.book belongs to the superuser", asked=lambda asked: asked.by_installer()
    ),
    "a key of a type that others keep to themselves": Scenario(
        "nor use the type public.mood",
        (
            "CREATE TYPE mood AS ENUM ('glad', 'sad')",
            "REVOKE USAGE ON TYPE mood FROM PUBLIC",
            *ADMITTED,
            "ALTER TABLE book DROP CONSTRAINT book_pkey, ADD feeling mood PRIMARY KEY",
        ),
        lambda asked: asked.by_installer(),
    ),
}

OF_LOGS: Mapping[str, Scenario] = {
    "no log reader": Scenario(
        "name as its log_reader the connection of a login with REPLICATION",
        asked=lambda asked: asked.by_log(log_reader="", reads_log=None),
    ),
    "a log reader without REPLICATION": Scenario(
        f"the login {READER} has no REPLICATION", asked=lambda asked: asked.by_log(log_reader=READER)
    ),
    "a log reader with another password": Scenario(
        "its log_reader cannot log in",
        asked=lambda asked: [
            replace(each, reads_log=each.reads_log.model_copy(update={"password": SecretStr("wrong")}))  # type: ignore[union-attr]
            for each in asked.by_log()
        ],
    ),
    "a log reader of another database": Scenario(
        "its log_reader leads to another database than its installer",
        asked=lambda asked: [
            replace(each, reads_log=other.reads_log)
            for each, other in zip(asked.by_log(), reversed(asked.by_log()), strict=True)
        ],
    ),
    "a replica identity that is not the key": Scenario(
        "has the REPLICA IDENTITY FULL",
        (BOOK, "ALTER TABLE book REPLICA IDENTITY FULL"),
        lambda asked: asked.by_log(),
    ),
    "a publication of somebody else's": Scenario(
        "the publication concordcapture belongs to {owner} and is not Concord's",
        (BOOK, "CREATE PUBLICATION concordcapture", 'ALTER PUBLICATION concordcapture OWNER TO "{owner}"'),
        lambda asked: asked.by_log(),
    ),
}

OF_REPLICATIONS: Mapping[str, Scenario] = {
    "a replicated table that is not there": Scenario(
        "public.book does not exist", (), lambda asked: asked.replicated()
    ),
    "a constraint that is checked later": Scenario(
        "has a deferrable unique constraint",
        ("CREATE TABLE book (id int PRIMARY KEY, title text UNIQUE DEFERRABLE)",),
        lambda asked: asked.replicated(),
    ),
    "a publisher without a log reader": Scenario(
        "it publishes; name the connection of a login with REPLICATION",
        asked=lambda asked: asked.replicated(log_reader=""),
    ),
    "a set's publication of somebody else's": Scenario(
        "the publication concord_books belongs to {owner} and is not Concord's",
        (BOOK, "CREATE PUBLICATION concord_books", 'ALTER PUBLICATION concord_books OWNER TO "{owner}"'),
        lambda asked: asked.replicated(),
    ),
    "a procedure that is not there": Scenario(
        "the procedure public.pay does not exist",
        asked=lambda asked: asked.replicated(procedures=(parse_table_name("public.pay"),)),
    ),
}

OF_SNAPSHOTS: Mapping[str, Scenario] = {
    "a source that is not there": Scenario(
        "london: public.book does not exist", (), lambda asked: asked.copied()
    ),
    "a destination that holds rows": Scenario(
        "capetown: public.copy holds rows already",
        (BOOK, "CREATE TABLE copy (id int PRIMARY KEY, title text)", "INSERT INTO copy VALUES (1, 'x')"),
        lambda asked: asked.copied(),
    ),
    "a destination in no schema": Scenario(
        "capetown: shown.copy: there is no schema shown",
        asked=lambda asked: asked.copied(table=parse_table_name("shown.copy")),
    ),
}

SCENARIOS = {**OF_LINKS, **OF_RIGHTS, **OF_LOGS, **OF_REPLICATIONS, **OF_SNAPSHOTS}

#: Everything in the catalogues of a database, and its slots: no transaction that writes one of them leaves it equal.
WRITTEN = """
SELECT 'class', oid::text, xmin::text FROM pg_class UNION ALL SELECT 'function', oid::text, xmin::text FROM pg_proc
UNION ALL SELECT 'schema', oid::text, xmin::text FROM pg_namespace
UNION ALL SELECT 'trigger', oid::text, xmin::text FROM pg_trigger
UNION ALL SELECT 'publication', oid::text, xmin::text FROM pg_publication
UNION ALL SELECT 'database', oid::text, xmin::text FROM pg_database WHERE datname = current_database()
UNION ALL SELECT 'role', rolname, '' FROM pg_roles WHERE starts_with(rolname, 'concord_owner_of_' || current_database())
UNION ALL SELECT 'slot', slot_name, '' FROM pg_replication_slots WHERE database = current_database() ORDER BY 1, 2"""


@pytest.fixture
def asked(sites: Bare, server_with_logins: Server) -> Iterator[Asked]:
    made = Asked(sites, new_installer(server_with_logins), new_role(server_with_logins))
    with ExitStack() as ends:
        for site in sites.sites:
            ends.callback(site.drop_slots)
        yield made


def spoil(asked: Asked, statements: tuple[str, ...]) -> None:
    for site in asked.bare.sites:
        names = {"installer": asked.installer, "owner": asked.owner, "role": owner.role(site.database)}
        site.run(*(_named(statement, names) for statement in statements))


def _named(statement: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        statement = statement.replace(f"{{{name}}}", value)
    return statement


def told(installations: list[Installation]) -> tuple[ConcordError, list[str]]:
    """The error of `provision`, and the lines of `--check`."""
    with pytest.raises(ConcordError) as refused:
        provisioning.provision(installations)
    return refused.value, provisioning.check(installations)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_check_names_what_provisioning_refuses_and_writes_nothing(asked: Asked, name: str) -> None:
    scenario = SCENARIOS[name]
    if scenario.before:
        spoil(asked, scenario.before)
        key = {"key": ("title",)} if name == "a configured key that is gone" else {}
        provisioning.provision(asked.installations(WANTED.model_copy(update=key)))
    spoil(asked, scenario.spoiled)
    before = [site.rows(WRITTEN) for site in asked.bare.sites]
    error, checked = told(scenario.asked(asked))
    said = _named(scenario.said, {"owner": asked.owner})
    assert said in error.message
    assert any(said in line for line in checked)
    assert set(error.facts.get("problems", ())) <= set(checked)  # type: ignore[call-overload]
    assert len(set(checked)) == len(checked)
    assert [site.rows(WRITTEN) for site in asked.bare.sites] == before


def test_a_refused_table_is_not_said_to_be_missing_as_well(asked: Asked) -> None:
    spoil(asked, ("CREATE TABLE author (id int PRIMARY KEY)", "CREATE TABLE book (id int)"))
    author = ReplicatedTable(table=parse_table_name("public.author"))
    provisioning.provision(asked.bare.installations([author]))
    checked = provisioning.check(asked.bare.installations([author, WANTED]))
    assert len(checked) == 2
    assert all("public.book has no primary key" in line for line in checked)


def test_a_type_that_the_destination_of_a_snapshot_needs_is_named(asked: Asked) -> None:
    asked.bare.london.run(
        "CREATE TYPE mood AS ENUM ('glad', 'sad')", "CREATE TABLE book (id int PRIMARY KEY, feeling mood)"
    )
    error, checked = told(asked.copied())
    said = "capetown: public.copy: there is no type public.mood, which a column of public.book has; create it first"
    assert said in error.message
    assert said in checked
    asked.bare.capetown.run("CREATE TYPE mood AS ENUM ('glad', 'sad')")
    provisioning.provision(asked.copied())
    assert provisioning.check(asked.copied()) == []


def test_sites_that_differ_are_named_by_both_and_so_is_one_that_does_not_answer(asked: Asked) -> None:
    asked.bare.london.run(BOOK)
    asked.bare.capetown.run("CREATE TABLE book (id int PRIMARY KEY)")
    away = replace(
        asked.installations()[0],
        site="paris",
        installer=asked.installations()[0].installer.model_copy(update={"port": 1}),
    )
    error, checked = told([*asked.installations(), away])
    for said in ("public.book: column title exists at london but not at capetown", "paris: "):
        assert said in error.message
        assert sum(said in line for line in checked) == 1


def test_after_the_script_of_a_superuser_a_key_of_others_type_is_captured(
    asked: Asked, server_with_logins: Server
) -> None:
    spoil(asked, OF_RIGHTS["a key of a type that others keep to themselves"].spoiled)
    for (_, script), site in zip(list(provisioning.sql(asked.by_installer())), asked.bare.sites, strict=True):
        site.run(script)
    provisioning.provision(asked.by_installer())
    assert provisioning.check(asked.by_installer()) == []
    asked.bare.london.run("INSERT INTO book VALUES (1, 'one', 'glad')")
    assert asked.bare.london.rows('SELECT feeling::text FROM concord."public.book"') == [("glad",)]


def test_a_log_reader_is_let_into_the_database_before_its_slot_is_made(asked: Asked) -> None:
    """PUBLIC may not log in to this database, and the installer may let the reader in."""
    spoil(asked, (BOOK, _CLOSED))
    provisioning.provision(asked.by_log())
    assert all(len(site.rows("SELECT FROM pg_replication_slots WHERE database = current_database()")) == 1
               for site in asked.bare.sites)  # fmt: skip
    assert provisioning.check(asked.by_log()) == []


_CLOSED = "DO $$BEGIN EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database()); END$$"


def test_a_log_reader_that_the_installer_cannot_let_in_is_named(asked: Asked) -> None:
    spoil(asked, (*ADMITTED, _CLOSED, _LET_IN))
    installations = [
        replace(each, installer=site.credentials(asked.installer))
        for each, site in zip(asked.by_log(), asked.bare.sites, strict=True)
    ]
    error, checked = told(installations)
    said = f"give {LOG_READER} CONNECT on database {asked.bare.london.database}"
    assert said in error.message
    assert any(said in line for line in checked)


_LET_IN = (
    "DO $$BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO"
    f' "{{installer}}", {READER}, {APPLIER}\', current_database()); END$$'
)


def test_a_server_that_has_no_slot_left_is_refused_before_anything_is_published(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = {"wal_level": "logical", "max_replication_slots": "0"}
    server = Server.create(tmp_path_factory.mktemp("slots") / "server", settings=settings)
    try:
        for name in ("london", "capetown"):
            server.create_database(name)
        bare = Bare(*(site_on(server, name, name) for name in ("london", "capetown")))
        create_logins(bare.london.connection)
        bare.run(BOOK)
        error, checked = told(Asked(bare, "", "").by_log())
        said = "all of the server's replication slots are in use (max_replication_slots is 0)"
        assert said in error.message
        assert sum(said in line for line in checked) == 2
        assert all(site.rows("SELECT FROM pg_publication") == [] for site in bare.sites)
        close(bare)
    finally:
        server.remove()


def close(bare: Bare) -> None:
    for site in bare.sites:
        site.connection.close()


def test_many_tables_of_one_reason_are_one_line_of_the_error(sites: Bare) -> None:
    tables = [ReplicatedTable(table=parse_table_name(f"public.t{number}")) for number in range(14)]
    sites.run(*(f"CREATE TABLE t{number} (id int)" for number in range(14)))
    error, checked = told(sites.installations(tables))
    reason = "has no primary key; add one, or name a unique key in the configuration (key: [...])"
    assert error.message.splitlines()[1:] == [
        f"  - {site}: public.t0, public.t1 and 12 others: {reason}" for site in ("london", "capetown")
    ]
    assert len(error.facts["problems"]) == 28  # type: ignore[arg-type]
    assert len(checked) == 30, "and neither site is provisioned"
    assert len(provisioning.grouped_lines(sites.installations(tables), checked)) == 4


def test_an_installer_that_may_see_nothing_is_told_what_to_do_by_both(asked: Asked, sites: Bare) -> None:
    sites.run(BOOK)
    provisioning.provision(asked.installations())
    error, checked = told(asked.by_installer())
    assert "let a superuser run the output of `provision --print-sql` once" in error.message
    assert any("let a superuser run the output of" in line for line in checked)
