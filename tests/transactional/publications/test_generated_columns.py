"""Published tables with generated columns on PostgreSQL 18, which refuses updates that leave these out of its log."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from concord.databases import provisioning
from concord.messages.errors import ProvisioningRefused, StructureChanged
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from embedded.postgres import Server
from tests.given.fixtures import site_on
from tests.given.goes_on import goes_on
from tests.given.mortal_site import mortal_server
from tests.given.replicated_sites import Replicated, begin_replicated
from tests.given.site import Site

BILL = (
    "CREATE TABLE bill (doubled int GENERATED ALWAYS AS (amount * 2) STORED, id int PRIMARY KEY, amount int,"
    " note text)",
    "INSERT INTO bill VALUES (DEFAULT, 1, 10, 'as loaded'), (DEFAULT, 2, 200, 'as loaded')",
)
PLAIN = "CREATE TABLE plain (id int PRIMARY KEY, thrice int GENERATED ALWAYS AS (id * 3) STORED)"
VIRTUAL = (
    "CREATE TABLE bill (id int PRIMARY KEY, amount int, doubled int GENERATED ALWAYS AS (amount * 2) VIRTUAL)"
)

Make = Callable[..., Replicated]


@pytest.fixture(scope="module")
def version_18(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("version") / "server"
    server = mortal_server(folder, version=18, fsync="off", wal_level="logical", max_slot_wal_keep_size="1GB")
    yield server
    server.remove()


@pytest.fixture
def new_sites(version_18: Server) -> Iterator[Callable[[], tuple[Site, Site]]]:
    made: list[Site] = []

    def new() -> tuple[Site, Site]:
        for name in ("london", "capetown"):
            version_18.drop_database(name)
            version_18.create_database(name)
            made.append(site_on(version_18, name, name))
        return made[-2], made[-1]

    yield new
    for site in made:
        site.drop_slots()
        site.connection.close()


@pytest.fixture
def replicated(new_sites: Callable[[], tuple[Site, Site]]) -> Make:
    def make(*ddl: str, tables: tuple[ReplicatedTable, ...], **settings: object) -> Replicated:
        return begin_replicated(*new_sites(), ddl, *tables, **settings)

    return make


def table(name: str = "public.bill", **settings: object) -> ReplicatedTable:
    return ReplicatedTable(table=parse_table_name(name), **settings)  # type: ignore[arg-type] # read by pydantic


def edit(sites: Replicated) -> None:
    sites.london.run(
        "UPDATE bill SET amount = 11 WHERE id = 1",
        "INSERT INTO bill VALUES (DEFAULT, 3, 30, 'new')",
        "DELETE FROM bill WHERE id = 1",
        "INSERT INTO bill VALUES (DEFAULT, 4, 40, 'new')",
        "UPDATE bill SET id = 5 WHERE id = 4",
    )


@pytest.mark.parametrize(
    "settings",
    [{"conversions": "compare"}, {"updates": "queued"}, {"conversions": "refuse"}],
    ids=lambda settings: "-".join(settings.values()),
)
def test_users_update_a_table_whose_rows_as_they_were_are_published(
    replicated: Make, settings: dict[str, object]
) -> None:
    sites = replicated(*BILL, PLAIN, tables=(table(), table("public.plain")), **settings)
    sites.initialize(replace=True)
    with goes_on(psycopg.Error):
        edit(sites)
    sites.london.run("INSERT INTO plain VALUES (1)", "UPDATE plain SET id = 2")
    sites.run()
    assert sites.are_equal()
    assert sites.capetown.rows("SELECT id, doubled FROM bill ORDER BY id") == [(2, 400), (3, 60), (5, 80)]
    assert list(provisioning.check(sites.installations())) == []


def test_a_filtered_table_with_generated_columns_is_updated_and_arrives(replicated: Make) -> None:
    sites = replicated(*BILL, tables=(table(where="amount < 100"),))
    sites.initialize(replace=True)
    edit(sites)
    sites.london.run("UPDATE bill SET amount = 20 WHERE id = 2", "UPDATE bill SET amount = 300 WHERE id = 3")
    sites.run()
    assert sites.capetown.rows("SELECT id, doubled FROM bill ORDER BY id") == [(2, 40), (5, 80)]


def test_a_publication_that_leaves_them_out_is_named_and_repaired(replicated: Make) -> None:
    sites = replicated(*BILL, tables=(table(),), conversions="compare")
    sites.initialize(replace=True)
    sites.london.run("ALTER PUBLICATION concord_operations SET (publish_generated_columns = none)")
    edit = "UPDATE bill SET amount = 12 WHERE id = 1"
    with pytest.raises(psycopg.Error, match="cannot update table"):
        sites.london.run(edit)
    problem = "the publication concord_operations does not publish generated columns"
    assert any(problem in line for line in provisioning.check(sites.installations()))
    with pytest.raises(StructureChanged, match=f"{problem};.* run `provision`"):
        sites.run()
    sites.provision()
    sites.london.run(edit)


def test_a_virtual_column_is_refused_by_name_where_updates_would_be(
    new_sites: Callable[[], tuple[Site, Site]],
) -> None:
    sites = new_sites()
    with pytest.raises(
        ProvisioningRefused, match=r"public\.bill: .* with a virtual column \(doubled\); make it STORED"
    ):
        begin_replicated(*sites, (VIRTUAL,), table(), conversions="compare")
    for site in sites:
        site.run("INSERT INTO bill VALUES (1, 10)", "UPDATE bill SET amount = 11")


def test_a_virtual_column_of_another_table_disturbs_nothing(replicated: Make) -> None:
    sites = replicated(VIRTUAL, tables=(table(),))
    sites.initialize(replace=True)
    sites.london.run("INSERT INTO bill VALUES (1, 10)", "UPDATE bill SET amount = 11")
    sites.run()
    assert sites.capetown.rows("TABLE bill") == [(1, 11, 22)]


def test_another_publication_that_leaves_them_out_is_named_with_its_remedy(
    new_sites: Callable[[], tuple[Site, Site]],
) -> None:
    sites = new_sites()
    for site in sites:
        site.run(*BILL, "CREATE PUBLICATION reports FOR TABLE bill")
    with pytest.raises(ProvisioningRefused) as refused:
        begin_replicated(*sites, (), table(), conversions="compare")
    remedy = "ALTER PUBLICATION reports SET (publish_generated_columns = stored)"
    assert f"the publication reports leaves its generated columns out; say {remedy}" in str(refused.value)
    for site in sites:
        site.run("UPDATE bill SET amount = 11 WHERE id = 1", remedy)
    made = begin_replicated(*sites, (), table(), conversions="compare")
    made.london.run("UPDATE bill SET amount = 12 WHERE id = 1")
