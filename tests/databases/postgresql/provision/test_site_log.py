"""A site whose changes are read from its log is made ready, checked and taken down (S1-32 b)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from concord.databases import provisioning
from concord.databases.postgresql.facts.own_schema import PUBLICATION, capture_slot
from concord.databases.provisioning import Installation
from concord.messages.errors import ProvisioningRefused
from embedded.postgres import Server
from tests.given.bare_sites import Bare, installation
from tests.given.fixtures import site_on
from tests.given.releases import release_of
from tests.given.site import APPLIER, LOG_READER, Site, create_logins, every_table, make_tables

TABLES = (
    "CREATE TABLE book (id int PRIMARY KEY, isbn text UNIQUE NOT NULL)",
    "INSERT INTO book VALUES (1, 'one')",
)
SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
PUBLICATIONS = "SELECT pubname FROM pg_publication"


@pytest.fixture
def london(sites: Bare) -> Iterator[Site]:
    make_tables(sites.london, TABLES)
    yield sites.london
    sites.london.drop_slots()


def logged(site: Site, log_reader: str = LOG_READER, **changed: object) -> Installation:
    tables = tuple(table.told_by_log(["london"]) for table in every_table(site))
    given: dict[str, object] = {"log_reader": log_reader}
    given |= {"reads_log": site.credentials(log_reader) if log_reader else None, "tables": tables}
    return replace(installation(site, tables), **given | changed)  # type: ignore[arg-type]


def by_triggers(site: Site, **changed: object) -> Installation:
    return logged(site, **{"tables": every_table(site)} | changed)


def problems(wanted: Installation) -> tuple[str, ...]:
    with pytest.raises(ProvisioningRefused) as refused:
        provisioning.provision([wanted])
    return tuple(refused.value.problems)  # type: ignore[arg-type]


def test_a_slot_and_the_keys_alone_stand_for_triggers_and_may_be_provisioned_again(london: Site) -> None:
    # S1-32 b, S0-43
    for _ in range(2):
        provisioning.provision([logged(london)])
        published = "SELECT attnames FROM pg_publication_tables WHERE pubname = 'concordcapture'"
        assert london.rows(published) == [(["id"],)]
        assert [name for (name,) in london.rows(SLOTS)] == [
            capture_slot(int(london.value("SELECT oid FROM pg_database WHERE datname = current_database()")))
        ]
        assert london.value("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'book'::regclass") == 0
        assert list(provisioning.check([logged(london)])) == []


def test_a_site_goes_back_to_triggers_and_keeps_no_slot(london: Site) -> None:
    provisioning.provision([logged(london)])
    london.as_application("UPDATE book SET isbn = 'two'")
    assert any("run `provision`" in line for line in provisioning.check([by_triggers(london)]))
    provisioning.provision([by_triggers(london)])
    assert london.rows(SLOTS) == london.rows(PUBLICATIONS) == london.rows("TABLE concord.log_capture") == []
    assert london.rows('SELECT id, origin FROM concord."public.book"') == [(1, "london#1")]
    assert list(provisioning.check([by_triggers(london)])) == []


def test_a_site_that_concord_leaves_keeps_no_slot_and_no_publication(london: Site) -> None:
    provisioning.provision([logged(london)])
    provisioning.remove([logged(london)])
    assert london.rows(SLOTS) == london.rows(PUBLICATIONS) == []
    provisioning.provision([logged(london)])
    assert len(london.rows(SLOTS)) == 1


@pytest.mark.parametrize(
    ("spoiling", "changed", "said"),
    [
        (
            "SELECT 1",
            {"log_reader": "", "reads_log": None},
            "name as its log_reader the connection of a login with",
        ),
        ("SELECT 1", {"log_reader": APPLIER}, f"the login {APPLIER} has no REPLICATION"),
        ("ALTER TABLE book REPLICA IDENTITY FULL", {}, "has the REPLICA IDENTITY FULL"),
        (
            "ALTER TABLE book REPLICA IDENTITY NOTHING",
            {},
            "has another replica identity than its replication key",
        ),
        ("ALTER TABLE book REPLICA IDENTITY USING INDEX book_isbn_key", {}, "another replica identity than"),
    ],
)
def test_a_log_that_would_not_tell_is_refused_and_nothing_is_written(
    london: Site, spoiling: str, changed: dict[str, object], said: str
) -> None:
    london.run(spoiling)
    (problem,) = problems(replace(logged(london), **changed))  # type: ignore[arg-type]
    assert said in problem
    assert london.rows(SLOTS) == london.rows(PUBLICATIONS) == []
    assert london.value("SELECT to_regnamespace('concord')") is None


def test_a_reader_that_leaves_before_the_log_does_is_asked_to_stay(london: Site) -> None:
    provisioning.provision([logged(london)])
    (problem,) = problems(by_triggers(london, log_reader="", reads_log=None))
    assert "leave its log_reader there until `provision` has run" in problem


@pytest.mark.parametrize(
    ("spoiling", "said"),
    [
        (f"ALTER PUBLICATION {PUBLICATION} DROP TABLE book", "is not published by its key"),
        (f"ALTER PUBLICATION {PUBLICATION} SET TABLE book", "is not published by its key"),
        ("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
         " WHERE database = current_database()", "is gone, and with it the log; run `provision`, then"),
        ("ALTER TABLE book REPLICA IDENTITY NOTHING", "has another replica identity than its replication key"),
        ("DELETE FROM concord.log_capture", "its log is not read yet; run `provision`"),
    ],
)  # fmt: skip
def test_a_check_says_why_the_log_does_not_tell_any_more(london: Site, spoiling: str, said: str) -> None:
    provisioning.provision([logged(london)])
    london.run(spoiling)
    assert any(said in line for line in provisioning.check([logged(london)]))


def test_no_script_makes_a_slot(london: Site) -> None:
    with pytest.raises(ProvisioningRefused, match="no script begins or ends to read its log"):
        list(provisioning.sql([logged(london)]))


def test_a_server_whose_log_has_no_rows_is_refused_before_anything_is_written(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder, settings = tmp_path_factory.mktemp("replica") / "server", {"wal_level": "replica"}
    server = Server.create(folder, version=release_of("london"), settings=settings)
    try:
        server.create_database("london")
        site = site_on(server, "london", "london")
        create_logins(site.connection)
        make_tables(site, TABLES)
        (problem,) = problems(logged(site))
        assert "wal_level is replica; capture: log needs ALTER SYSTEM SET wal_level = logical" in problem
        assert site.value("SELECT to_regnamespace('concord')") is None
        site.connection.close()
    finally:
        server.remove()


def test_a_log_that_nothing_bounds_is_worth_a_notice(london: Site) -> None:
    notices = [line for line in provisioning.notices([logged(london)]) if "max_slot_wal_keep_size" in line]
    assert bool(notices) == (london.value("SHOW max_slot_wal_keep_size") == "-1")
