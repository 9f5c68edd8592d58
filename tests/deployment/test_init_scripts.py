"""The init scripts, run on a real server as the PostgreSQL image runs them: once, on an empty one."""

import os
import re
import subprocess
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from embedded.postgres import Server
from tests.deployment.compose_file import PROJECT, services, value_of

MAJOR = int(re.findall(r":(\d+)", services()["postgres"]["image"])[0])
SHELL_SCRIPTS = sorted((PROJECT / "compose").glob("*-init.sh"))


def scripts(service: str) -> list[str]:
    """The files mounted for the first start, in the order of the names they are mounted under."""
    mounts = [mount.split(":") for mount in services()[service]["volumes"]]
    return [
        source for target, source in sorted((mount[1], mount[0]) for mount in mounts) if "initdb.d" in target
    ]


def run_script(server: Server, script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run one script as the image does: as the superuser, shell scripts by a shell, SQL by psql."""
    path = f"{server.bin}{os.pathsep}{os.environ['PATH']}"
    connection = {"PGHOST": server.host, "PGPORT": str(server.port), "PGPASSWORD": server.password}
    psql = ["psql", "--set", "ON_ERROR_STOP=1", "--username", "postgres", "--file"]
    command = ["sh"] if script.endswith(".sh") else psql
    environment = {"PATH": path, "PGDATABASE": variables["POSTGRES_DB"], **connection, **variables}
    return subprocess.run(
        [*command, str(PROJECT / script)], env=environment, capture_output=True, text=True, check=False
    )


def start(server: Server, service: str) -> None:
    """The first start of a database service."""
    variables = services()[service]["environment"]
    if variables["POSTGRES_DB"] != "postgres":
        server.create_database(variables["POSTGRES_DB"])
    assert scripts(service)
    for script in scripts(service):
        run = run_script(server, script, variables)
        assert run.returncode == 0, run.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server.create(tmp_path_factory.mktemp("site") / "server", version=MAJOR)
    start(server, "site-london")
    yield server
    server.remove()


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server.create(tmp_path_factory.mktemp("metadata") / "server", version=MAJOR)
    start(server, "postgres")
    yield server
    server.remove()


def connect(server: Server, role: str, variable: str, database: str = "london") -> psycopg.Connection:
    return psycopg.connect(server.uri(database, role, value_of(variable)), autocommit=True)


def test_the_installer_can_make_concord_s_schema_and_triggers(site: Server) -> None:
    with connect(site, "concord_installer", "LONDON_INSTALLER_PASSWORD") as connection:
        connection.execute("CREATE SCHEMA concord AUTHORIZATION concord_owner_of_london")
        connection.execute(
            "CREATE FUNCTION concord.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        )
        connection.execute(
            "CREATE TRIGGER t AFTER INSERT ON public.flights FOR EACH ROW EXECUTE FUNCTION concord.f()"
        )
        connection.execute("GRANT SELECT ON public.flights TO concord_reader")
        assert (triggers_of_flights(site), reads_flights(site)) == (["t"], True)
        connection.execute("REVOKE SELECT ON public.flights FROM concord_reader")
        connection.execute("DROP SCHEMA concord CASCADE")
    assert (triggers_of_flights(site), reads_flights(site)) == ([], False)


def triggers_of_flights(site: Server) -> list[str]:
    query = "SELECT tgname FROM pg_trigger WHERE tgrelid = 'public.flights'::regclass AND NOT tgisinternal"
    with psycopg.connect(site.uri("london")) as superuser:
        return [name for (name,) in superuser.execute(query)]


def reads_flights(site: Server) -> bool:
    with psycopg.connect(site.uri("london")) as superuser:
        query = "SELECT has_table_privilege('concord_reader', 'public.flights', 'SELECT')"
        [(reads,)] = superuser.execute(query).fetchall()
    return bool(reads)


def test_the_reader_can_connect_and_nothing_else(site: Server) -> None:
    with connect(site, "concord_reader", "LONDON_READER_PASSWORD") as connection:
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("SELECT FROM public.flights")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("SET session_replication_role = replica")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE public.mine ()")


def test_the_applier_can_silence_triggers_and_nothing_else(site: Server) -> None:
    with connect(site, "concord_applier", "LONDON_APPLIER_PASSWORD") as connection:
        connection.execute("SET session_replication_role = replica")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("DELETE FROM public.flights")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE public.mine ()")


def test_no_login_of_concord_s_is_powerful(site: Server) -> None:
    with psycopg.connect(site.uri("london")) as connection:
        powerful = connection.execute(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE 'concord%'"
            " AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)"
        )
        assert powerful.fetchall() == []


def test_the_configured_tables_are_there_with_rows(site: Server) -> None:
    with psycopg.connect(site.uri("london")) as connection:
        for table in ("airlines", "flights"):
            [(count,)] = connection.execute(f"SELECT count(*) FROM public.{table}").fetchall()
            assert count > 0


@pytest.mark.parametrize("missing", ["AIRFLOW_DB_PASSWORD", "CONCORD_DB_PASSWORD"])
def test_a_missing_password_stops_the_first_start(server: Server, missing: str) -> None:
    variables = dict(services()["postgres"]["environment"])
    del variables[missing]
    run = run_script(server, "compose/metadata-init.sh", variables)
    with psycopg.connect(server.uri("postgres"), autocommit=True) as connection:
        for name in ("airflow", "concord"):
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
            connection.execute(f"DROP ROLE IF EXISTS {name}")
    assert run.returncode != 0


@pytest.mark.parametrize("script", SHELL_SCRIPTS, ids=lambda script: script.name)
def test_no_password_stands_in_an_argument_list(script: object) -> None:
    shell_expansions = re.findall(r"\$\{?\w*PASSWORD", (PROJECT / str(script)).read_text())
    assert shell_expansions == []


def test_airflow_and_the_repository_each_own_their_database(metadata: Server) -> None:
    for owner, variable in (("airflow", "AIRFLOW_DB_PASSWORD"), ("concord", "CONCORD_DB_PASSWORD")):
        with connect(metadata, owner, variable, owner) as connection:
            connection.execute("CREATE TABLE public.mine ()")
            owners = "SELECT tableowner FROM pg_tables WHERE tablename = 'mine'"
            assert connection.execute(owners).fetchall() == [(owner,)]
            database = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()"
            assert connection.execute(database).fetchall() == [(owner,)]


@pytest.mark.parametrize(
    ("role", "variable", "other"),
    [("airflow", "AIRFLOW_DB_PASSWORD", "concord"), ("concord", "CONCORD_DB_PASSWORD", "airflow")],
)
def test_neither_reaches_the_other_s_database(metadata: Server, role: str, variable: str, other: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        connect(metadata, role, variable, other)
