"""The logins of `prepare`'s scripts: each database has its own, and no script locks out another folder."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg import errors, sql

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.databases.contract.logins import INSTALLER, LOGINS, name_of
from concord.databases.contract.quoting import LONGEST_NAME
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.postgresql.sites.owner import role
from concord.jobs.link import Direction, LinkJob
from embedded.postgres import Server
from tests.given.link_job import link_job
from tests.given.link_without_spark import carry
from tests.given.prepared_sites import access, credentials, installation, logins, owned, prepared, run_script

Make = Callable[..., None]

#: Four databases of one server, and so two pairs.
NAMES = {
    "plain": ["crm_1", "crm_2", "sales_1", "sales_2"],
    "long": [
        f"{'a_database_of_which_the_name_is_as_long_as_a_name_may_be_here':_<62}{last}" for last in "1234"
    ],
    "of several bytes": [f"kundenverhältnisse_und_verträge_für_köln_{'ü' * 8}{last}" for last in "1234"],
    "odd": ['The "CRM".v1', "The 'CRM'.v2", r"100% \CRM{}; --", "CRM $$ , a"],
}


@pytest.fixture
def make(server: Server) -> Iterator[Make]:
    """Makes databases of these names with their tables; they are dropped afterwards, with the scripts' roles."""
    with ExitStack() as stack:

        def made(*names: str) -> None:
            for name in names:
                server.create_database(name)
                stack.callback(server.drop_database, name)
            stack.enter_context(owned(server, names))

        yield made


def gets_in(folder: Path, connection: str) -> bool:
    given = credentials(folder, connection)
    try:
        psycopg.connect(
            host=given.host,
            port=given.port,
            dbname=given.database,
            user=given.user,
            password=given.password.get_secret_value(),
        ).close()
    except psycopg.OperationalError:
        return False
    return True


def job(folder: Path, direction: Direction = Direction.FORWARD) -> LinkJob:
    london, capetown = access(folder, "london"), access(folder, "capetown")
    ends = (london, capetown) if direction is Direction.FORWARD else (capetown, london)
    tables = load(folder / "concord.yaml").tables("london_capetown")
    return link_job(ends, tables, synchronization="london_capetown", direction=direction)


def insert(server: Server, database: str, row: int) -> None:
    with psycopg.connect(server.uri(database), autocommit=True) as user:
        user.execute("INSERT INTO public.customers VALUES (%s)", [row])


def customers(server: Server, database: str) -> list[int]:
    with psycopg.connect(server.uri(database)) as user:
        return [row for (row,) in user.execute("SELECT id FROM public.customers ORDER BY id")]


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_two_pairs_on_one_server_synchronize_whatever_their_databases_are_called(
    tmp_path: Path, server: Server, make: Make, names: list[str]
) -> None:
    make(*names)
    pairs = {tmp_path / "one": names[:2], tmp_path / "other": names[2:]}
    for folder, pair in pairs.items():
        prepared(folder, server, pair)
        for site, database in zip(("london", "capetown"), pair, strict=True):
            run_script(folder, site, server, database)
    for folder in pairs:
        tables = load(folder / "concord.yaml").tables("london_capetown")
        sites = [installation(folder, site, tables=tables) for site in ("london", "capetown")]
        provisioning.provision(sites)
        assert provisioning.check(sites) == []
        declare_equal(job(folder))
    for folder, (london, capetown) in pairs.items():
        insert(server, london, 1)
        insert(server, capetown, 2)
        carry(job(folder))
        carry(job(folder, Direction.REVERSE))
        assert customers(server, london) == customers(server, capetown) == [1, 2]


def test_the_installer_of_one_database_does_not_act_for_another_one(
    tmp_path: Path, server: Server, make: Make
) -> None:
    make("crm", "sales")
    prepared(tmp_path / "own", server, ["crm", "sales"])
    for site, database in (("london", "crm"), ("capetown", "sales")):
        run_script(tmp_path / "own", site, server, database)
    member = "SELECT pg_has_role(%s, %s, 'MEMBER')"
    with psycopg.connect(server.uri("crm")) as superuser:
        for database, acts in (("crm", True), ("sales", False)):
            asked = superuser.execute(member, ["concord_installer_of_crm", role(database)])
            assert asked.fetchone() == (acts,)


def test_names_of_long_databases_are_distinct_and_no_longer_than_postgresqls() -> None:
    made = {name for database in NAMES["long"] for name in logins(database)}
    assert len(made) == len(LOGINS) * len(NAMES["long"])
    assert max(len(name.encode()) for name in made) <= LONGEST_NAME


def test_a_second_folder_for_a_database_is_refused_until_its_logins_are_handed_over(
    tmp_path: Path, server: Server, make: Make
) -> None:
    make("crm", "sales")
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        prepared(folder, server, ["crm", "sales"])
    run_script(first, "london", server, "crm")
    with pytest.raises(errors.RaiseException) as refused:
        run_script(second, "london", server, "crm")
    said = refused.value.diag
    assert (
        said.message_primary
        == f"{', '.join(logins('crm'))} exist, with other passwords than this script gives"
    )
    advice, _, remedy = (said.message_hint or "").partition("out: ")
    assert advice == "Use the folder whose script made them. Or run this first, which locks that folder "
    assert (gets_in(first, "london"), gets_in(second, "london")) == (True, False)

    with psycopg.connect(server.uri("crm"), autocommit=True) as superuser:
        superuser.execute(remedy.encode())
    run_script(second, "london", server, "crm")
    assert (gets_in(first, "london"), gets_in(second, "london")) == (False, True)
    assert all(gets_in(second, f"london_{each}") for each in ("reader", "applier"))


def test_a_superuser_sees_which_logins_were_made(tmp_path: Path, server: Server, make: Make) -> None:
    make("crm", "sales")
    prepared(tmp_path / "own", server, ["crm", "sales"])
    assert run_script(tmp_path / "own", "london", server, "crm") == [
        f"logins made: {', '.join(logins('crm'))}"
    ]
    with psycopg.connect(server.uri("crm"), autocommit=True) as superuser:
        superuser.execute("ALTER ROLE concord_installer_of_crm NOLOGIN")
    *_, again = run_script(tmp_path / "own", "london", server, "crm")
    assert again == ("logins made: none; they exist, with the passwords of this script")
    assert gets_in(tmp_path / "own", "london")


def test_logins_of_an_earlier_concord_are_left_alone_and_named_where_they_serve_this_database(
    tmp_path: Path, server: Server, make: Make
) -> None:
    """It called them alike at every database."""
    make("crm", "sales")
    prepared(tmp_path / "own", server, ["crm", "sales"])
    with psycopg.connect(server.uri("crm"), autocommit=True) as superuser:
        for login in LOGINS:
            superuser.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'earlier'").format(sql.Identifier(login))
            )
        superuser.execute("CREATE ROLE concord_owner_of_crm NOLOGIN NOINHERIT")
        superuser.execute("GRANT concord_owner_of_crm TO concord_installer")
        verifiers = "SELECT rolname, rolpassword FROM pg_authid WHERE rolname = ANY (%s) ORDER BY 1"
        before = superuser.execute(verifiers, [list(LOGINS)]).fetchall()

        run_script(tmp_path / "own", "capetown", server, "sales")
        with pytest.raises(errors.RaiseException) as refused:
            run_script(tmp_path / "own", "london", server, "crm")
        said = refused.value.diag
        assert said.message_primary == (
            "concord_installer may act as concord_owner_of_crm: another folder serves this database"
        )
        assert superuser.execute(verifiers, [list(LOGINS)]).fetchall() == before
        assert superuser.execute(verifiers, [[name_of(INSTALLER, "crm")]]).fetchall() == []

        remedy = (said.message_hint or "").partition("out: ")[2]
        superuser.execute(remedy.encode())
        run_script(tmp_path / "own", "london", server, "crm")
        assert superuser.execute(verifiers, [list(LOGINS)]).fetchall() == before
    assert gets_in(tmp_path / "own", "london")
