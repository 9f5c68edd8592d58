"""`python -m concord prepare`: what it writes, for whose eyes, and what the superuser's script does."""

import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.databases.postgresql.sites.owner import role
from concord.databases.registry import dialect
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import ConfigurationInvalid, ParametersRefused
from concord.tables.identity import Identity
from concord.terminal.prepare import Place, next_steps, prepare
from concord.transactional.replicate import replicate
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.link_job import next_epoch
from tests.given.prepared_sites import (
    TABLES,
    access,
    connections,
    credentials,
    installation,
    logins,
    owned,
    prepared,
    run_script,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "own"


@pytest.fixture
def two(server: Server, database: Callable[[], Database]) -> Iterator[list[Database]]:
    """Two databases of one server, whose tables belong to an ordinary role; all roles are gone afterwards."""
    both = [database(), database()]
    with owned(server, [each.name for each in both]):
        yield both


def test_the_folder_is_for_its_owner_alone_and_its_scripts_hold_no_password(folder: Path) -> None:
    prepare(
        folder, [Place.parse("london=db.one/crm"), Place.parse("capetown=db.two:5433/crm")], TABLES, "system"
    )
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
    assert modes == dict.fromkeys(("concord.yaml", "london.sql", "capetown.sql", "environment"), 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    found = connections(folder)
    assert sorted(found) == sorted(
        [f"{site}{role}" for site in ("LONDON", "CAPETOWN") for role in ("", "_READER", "_APPLIER")]
        + ["SPARK_DEFAULT"]
    )
    passwords = {each["password"] for name, each in found.items() if name != "SPARK_DEFAULT"}
    assert len(passwords) == 6
    scripts = (folder / "london.sql").read_text() + (folder / "capetown.sql").read_text()
    assert [password for password in passwords if password in scripts] == []
    assert found["CAPETOWN_READER"]["extra"] == {"dialect": "postgresql", "sslrootcert": "system"}
    assert (found["CAPETOWN_READER"]["host"], found["CAPETOWN_READER"]["port"]) == ("db.two", 5433)


def test_what_it_writes_is_a_valid_configuration_and_the_next_steps_name_it(folder: Path) -> None:
    places = [Place.parse("london=db.one/crm"), Place.parse("capetown=[::1]:5433/crm")]
    prepare(folder, places, TABLES, None)
    pair = load(folder / "concord.yaml").synchronizations["london_capetown"]
    assert pair.sites == ("london", "capetown")
    tables = load(folder / "concord.yaml").tables("london_capetown")
    assert [str(table.name) for table in tables] == ["public.customers", "ops.Odd Table"]
    for table in tables:
        assert table.identity == Identity(slots=10, slot={"london": 1, "capetown": 2})
    steps = list(next_steps(folder, places))
    assert steps[1] == f"psql -h ::1 -p 5433 -U postgres -d crm -f {folder}/capetown.sql"
    assert "python -m concord initialize london_capetown" in steps


def test_a_replication_has_its_own_section_and_a_login_that_reads_the_publishers_log(folder: Path) -> None:
    london, capetown = Place.parse("london=db.one/crm"), Place.parse("capetown=db.two/crm")
    places = [replace(london, publishes=True), capetown]
    prepare(folder, places, TABLES, None)
    made = load(folder / "concord.yaml")
    replication = made.replication("london_to_capetown")
    assert (replication.publisher, replication.subscriber) == ("london", "capetown")
    assert [each.name for each in replication.tables] == ["public.customers", "ops.Odd Table"]
    assert [each.identity for each in replication.tables] == [None, None], "the publisher alone inserts"
    assert (made.synchronizations, made.sites["london"].log_reader) == ({}, "london_log_reader")
    assert [name for name in connections(folder) if "LOG" in name] == ["LONDON_LOG_READER"]
    assert " LOGIN REPLICATION " not in (folder / "capetown.sql").read_text()
    initialize, run = list(next_steps(folder, places))[-2:]
    assert initialize == "python -m concord replicate london_to_capetown --initialize"
    assert run == "python -m concord replicate london_to_capetown"


def test_a_second_preparation_would_lose_the_passwords_and_is_refused(folder: Path) -> None:
    places = [Place.parse("london=db.one/crm"), Place.parse("capetown=db.two/crm")]
    prepare(folder, places, TABLES, None)
    before = (folder / "environment").read_text()
    with pytest.raises(
        ParametersRefused, match=r"holds concord\.yaml, environment, london\.sql, capetown\.sql"
    ):
        prepare(folder, places, TABLES, None)
    assert (folder / "environment").read_text() == before


@pytest.mark.parametrize(
    "place", ["london", "london=", "london=db.one", "london=db.one:x/crm", "london=me:secret@db.one/crm"]
)
def test_a_place_that_cannot_be_read_is_refused_without_repeating_what_may_be_a_password(place: str) -> None:
    with pytest.raises(
        ParametersRefused, match=r"write it as london=db\.london\.example:5432/crm"
    ) as refused:
        Place.parse(place)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("places", "tables", "error"),
    [
        (["London=db.one/crm", "capetown=db.two/crm"], ["public.t"], ConfigurationInvalid),
        (["london=db.one/crm", "london=db.two/crm"], ["public.t"], ConfigurationInvalid),
        (["london=db.one/crm", "capetown=db.one:5432/crm"], ["public.t"], ParametersRefused),
        (["london=db.one/crm", "capetown=db.two/crm"], ["customers"], ConfigurationInvalid),
        (["london=db.one/$concord$", "capetown=db.two/crm"], ["public.t"], ParametersRefused),
    ],
)
def test_what_no_configuration_can_hold_is_refused_and_nothing_is_written(
    folder: Path, places: list[str], tables: list[str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        prepare(folder, [Place.parse(each) for each in places], tables, None)
    assert not folder.exists()


def test_each_login_gets_in_with_its_password_and_has_no_more_than_its_rights(
    folder: Path, server: Server, two: list[Database]
) -> None:
    """Also where both sites are databases of one server; and a script may be run again."""
    prepared(folder, server, [each.name for each in two])
    for site, each in (("london", two[0]), ("capetown", two[1]), ("london", two[0])):
        run_script(folder, site, server, each.name)
    for name, given in connections(folder).items():
        if name != "SPARK_DEFAULT":
            uri = server.uri(given["schema"], given["login"], given["password"])
            with psycopg.connect(uri) as connection:
                assert connection.execute("SELECT current_user").fetchone() == (given["login"],)
    with psycopg.connect(two[0].uri) as superuser:
        attributes = "rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
        made = [name for place in two for name in (*logins(place.name), role(place.name))]
        rights = f"SELECT rolname FROM pg_roles WHERE rolname = ANY (%s) AND ({attributes})"
        assert superuser.execute(rights, [made]).fetchall() == []
        member = "SELECT pg_has_role('{}', 'Owner of CRM', 'MEMBER')"
        assert [superuser.execute(member.format(each)).fetchone() for each in logins(two[0].name)] == [
            (True,),
            (False,),
            (False,),
        ]
        parameter = "SELECT has_parameter_privilege('{}', 'session_replication_role', 'SET')"
        _, reader, applier = logins(two[0].name)
        assert [superuser.execute(parameter.format(each)).fetchone() for each in (applier, reader)] == [
            (True,),
            (False,),
        ]


@pytest.mark.parametrize(
    ("first", "refusal"),
    [
        ("ALTER TABLE public.customers OWNER TO CURRENT_USER", "belongs to the superuser"),
        ("DROP TABLE public.customers", "there is no table"),
    ],
)
def test_a_table_that_is_missing_or_a_superusers_is_refused_and_no_login_is_made(
    folder: Path, server: Server, two: list[Database], first: str, refusal: str
) -> None:
    prepared(folder, server, [each.name for each in two])
    with psycopg.connect(two[0].uri, autocommit=True) as superuser:
        superuser.execute(first.encode())
        with pytest.raises(psycopg.errors.RaiseException, match=refusal):
            run_script(folder, "london", server, two[0].name)
        made = "SELECT FROM pg_roles WHERE rolname = ANY (%s)"
        assert superuser.execute(made, [logins(two[0].name)]).fetchall() == []


def test_a_script_run_in_another_database_is_refused(
    folder: Path, server: Server, two: list[Database]
) -> None:
    prepared(folder, server, [each.name for each in two])
    with pytest.raises(psycopg.errors.RaiseException, match=r"this is database .*, and the script is for"):
        run_script(folder, "london", server, two[1].name)


def test_a_function_in_the_schema_public_does_not_stand_in_for_postgresqls_in_a_script(
    folder: Path, server: Server, two: list[Database]
) -> None:
    """A superuser runs it, and others may make functions there."""
    prepared(folder, server, [each.name for each in two])
    asked = "pg_has_role('{}', 'pg_database_owner'::regrole::oid, 'MEMBER')"
    with psycopg.connect(two[0].uri, autocommit=True) as superuser:
        superuser.execute(
            "CREATE FUNCTION public.pg_has_role(text, oid, text) RETURNS boolean LANGUAGE plpgsql AS"
            " $$BEGIN RAISE EXCEPTION 'as %', current_user; END$$"
        )
        with pytest.raises(psycopg.errors.RaiseException, match=f"as {server.superuser}"):
            superuser.execute(f"SELECT {asked.format(server.superuser)}".encode())
    run_script(folder, "london", server, two[0].name)


def test_a_replication_runs_with_nothing_but_what_was_prepared(
    folder: Path, server: Server, two: list[Database]
) -> None:
    prepared(folder, server, [each.name for each in two], publishes=True)
    for site, each in (("london", two[0]), ("capetown", two[1]), ("london", two[0])):
        run_script(folder, site, server, each.name)
    replication = load(folder / "concord.yaml").replication("london_to_capetown")
    sites = [
        installation(folder, "london", "london_log_reader", replications=(replication,)),
        installation(folder, "capetown", replications=(replication,)),
    ]
    provisioning.provision(sites)
    assert provisioning.check(sites) == []
    job = ReplicationJob(
        replication=replication,
        transmission=uuid4().hex,
        epoch=next_epoch(),
        source=access(folder, "london"),
        target=access(folder, "capetown"),
        log_reader=credentials(folder, "london_log_reader"),
    )
    with psycopg.connect(two[0].uri, autocommit=True) as users:
        try:
            replicate(job.model_copy(update={"initialize": True}), dialect)
            users.execute("INSERT INTO public.customers VALUES (1)")
            assert replicate(job, dialect).entries == 1
        finally:
            users.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE database = current_database()"
            )
    with psycopg.connect(two[1].uri) as readers:
        assert readers.execute("SELECT id FROM public.customers").fetchall() == [(1,)]
