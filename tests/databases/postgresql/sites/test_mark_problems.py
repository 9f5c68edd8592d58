"""Marks that cannot be relied on are refused when the table is provisioned, each with what to do (F18, F19)."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.databases.postgresql.capture.marks import MarkType, SiteMarks, marks_at
from concord.databases.postgresql.facts.catalogue import read_tables
from concord.databases.postgresql.facts.connection import connect
from concord.databases.postgresql.provision import site_refusals, site_statements
from concord.databases.postgresql.sites import mark_problems
from concord.databases.postgresql.sites import state as site_state
from concord.tables.replication_set import Marks, ReplicatedTable, TableName
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on
from tests.given.marked_sites import CAPE_TOWN, MARKS, MICROSECONDS, TABLE, table_with
from tests.given.site import APPLIER, READER, Site, provision_site

WANTED = ReplicatedTable(table=TABLE, tracking=MARKS)


@pytest.fixture
def site(server_with_logins: Server, database: Callable[[], Database]) -> Iterator[Site]:
    london = site_on(server_with_logins, "london", database().name)
    yield london
    london.connection.close()


def problems(site: Site, wanted: ReplicatedTable = WANTED) -> list[str]:
    state = site_state.read_site(site.connection, site.name, [wanted], 0)
    return [each.text for each in site_refusals.of_links(site.connection, state, READER, APPLIER)]


def test_good_marks_have_no_problem_and_leave_no_trigger(site: Site) -> None:
    site.run(table_with(MICROSECONDS))
    assert problems(site) == []
    provision_site(site, [WANTED])
    provision_site(site, [WANTED])
    state = site_state.read_site(site.connection, site.name, [WANTED], 0)
    assert list(site_statements.check(state)) == []
    triggers = "SELECT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal"
    assert site.rows(triggers) == [("concord.conflict",)]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("ALTER TABLE customer DROP COLUMN updated_at", "has no column updated_at"),
        ("ALTER TABLE customer ALTER updated_at DROP NOT NULL", "nullable mark updated_at"),
        ("ALTER TABLE customer ALTER is_deleted DROP NOT NULL", "nullable mark is_deleted"),
        (
            "ALTER TABLE customer ALTER updated_at DROP DEFAULT, ALTER updated_at TYPE text",
            "must be a timestamp",
        ),
        ("ALTER TABLE customer ALTER is_deleted DROP DEFAULT, ALTER is_deleted TYPE text", "must be boolean"),
        ("DROP INDEX customer_updated_at_idx", 'CREATE INDEX ON "public"."customer" ("updated_at")'),
        (
            "DROP INDEX customer_updated_at_idx; CREATE INDEX ON customer (updated_at) WHERE NOT is_deleted",
            "has no index on the mark",
        ),
        ("ALTER TABLE customer ALTER updated_at TYPE timestamp", "without time zone; say what it is in"),
        (
            "ALTER TABLE customer DROP CONSTRAINT customer_pkey, ADD PRIMARY KEY (id, updated_at)",
            "would change with every edit",
        ),
    ],
)
def test_marks_that_would_lose_an_edit_are_refused(site: Site, statement: str, said: str) -> None:
    site.run(table_with(MICROSECONDS), statement)
    (problem,) = problems(site)
    assert problem.startswith("london: public.customer has")
    assert said in problem


def test_a_time_zone_is_for_columns_that_have_none(site: Site) -> None:
    site.run(table_with(MICROSECONDS))
    zoned = MARKS.model_copy(update={"time_zone": {"london": CAPE_TOWN}})
    assert (
        "remove london from tracking.time_zone"
        in problems(site, WANTED.model_copy(update={"tracking": zoned}))[0]
    )
    site.run("ALTER TABLE customer ALTER updated_at TYPE timestamp")
    assert problems(site, WANTED.model_copy(update={"tracking": zoned})) == []
    nowhere = MARKS.model_copy(update={"time_zone": {"london": "Nowhere/Land"}})
    assert "does not know" in problems(site, WANTED.model_copy(update={"tracking": nowhere}))[0]


def test_another_way_of_tracking_needs_a_new_start(site: Site) -> None:
    site.run(table_with(MICROSECONDS))
    by_triggers = ReplicatedTable(table=TABLE)
    provision_site(site, [WANTED])
    (problem,) = problems(site, by_triggers)
    assert "by the marks updated_at and is_deleted" in problem
    assert "by triggers now; remove the site (provision --remove)" in problem
    state = site_state.read_site(site.connection, site.name, [by_triggers], 0)
    assert problem in list(site_statements.check(state))
    site_statements.remove_now(site.connection, state)
    provision_site(site, [by_triggers])
    assert "by triggers when it was provisioned" in problems(site)[0]


def test_the_view_is_concords_own_or_nobodys(site: Site) -> None:
    """S1-26: made, granted to the table's readers, taken away with the rest; another's is left alone."""
    live = TableName(schema_name="public", name="customer_live")
    wanted = WANTED.model_copy(update={"tracking": MARKS.model_copy(update={"view": live})})
    site.run(table_with(MICROSECONDS), "CREATE VIEW customer_live AS SELECT 1 AS theirs")
    assert (
        "public.customer_live exists, belongs to postgres and is not Concord's" in problems(site, wanted)[0]
    )
    site.run(
        "DROP VIEW customer_live", "INSERT INTO customer VALUES (1, 'a', now(), true), (2, 'b', now(), false)"
    )
    provision_site(site, [wanted])
    provision_site(site, [wanted])
    assert site.rows("SELECT id FROM customer_live") == [(2,)]
    assert site.value("SELECT has_table_privilege('an_application', 'customer_live', 'SELECT')")
    assert not site.value("SELECT has_table_privilege('an_application', 'customer_live', 'DELETE')")
    site_statements.remove_now(site.connection, site_state.read_site(site.connection, site.name, [wanted], 0))
    assert site.value("SELECT to_regclass('customer_live')") is None
    assert site.value("SELECT count(*) FROM customer") == 2


ZONES = ("Europe/Paris", "Africa/Johannesburg", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia")


def marks_in(site: Site, zone: str, digits: int) -> tuple[SiteMarks, MarkType]:
    site.run("DROP TABLE IF EXISTS customer", table_with((f"timestamp({digits})", "now()")))
    marks = Marks(changed_at="updated_at", deleted="is_deleted", time_zone={"london": zone})
    table = read_tables(site.connection, [TABLE])[TABLE]
    found = marks_at(ReplicatedTable(table=TABLE, tracking=marks), "london", table)
    assert found is not None
    return found, found.type


@pytest.mark.parametrize("zone", ZONES)
def test_the_window_holds_every_later_edit_whatever_the_clock_on_the_wall_shows(
    site: Site, zone: str
) -> None:
    """F19: at the end of summer an hour is shown twice. Every half hour of a year, and the 6 h after it."""
    marks, kind = marks_in(site, zone, 0)
    shown = kind.here("(s + make_interval(mins => n * 15))")
    begins = marks.since(0).partition(">= ")[2].replace("to_timestamp(0 / 1000000.0)", "s")
    assert "s - interval" in begins
    missed = site.value(
        f"SELECT count(*) FROM generate_series('2026-01-01 00:00+00'::timestamptz, '2026-12-31', '30 min') s,"
        f" generate_series(0, 24) n WHERE NOT {shown} >= {begins}"
    )
    assert missed == 0


@pytest.fixture(scope="module")
def asked(server_with_logins: Server) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    site = site_on(server_with_logins, "london", "postgres")
    with connect(site.credentials(server_with_logins.superuser)) as connection:
        yield connection
    site.connection.close()


@settings(max_examples=200)
@given(
    micros=st.integers(-(10**16), 10**17),
    digits=st.integers(0, 6),
    zone=st.sampled_from([None, "UTC", CAPE_TOWN, "Asia/Kathmandu"]),
)
def test_a_copy_is_never_newer_than_its_origin_and_cutting_it_again_changes_nothing(
    asked: psycopg.Connection[tuple[object, ...]], micros: int, digits: int, zone: str | None
) -> None:
    """F18: cut, never rounded up, before 1970 as after."""
    sql = f"timestamp({digits}) with{'out' if zone else ''} time zone"
    kind = MarkType(sql=sql, descriptor="", kind="b", root="timestamp", zone=zone, digits=digits)
    origin = f"(timestamptz '1970-01-01' + {micros} * interval '1 microsecond')"
    copy = kind.incoming(f"{origin}::text")
    told = kind.exact(f"({copy})")
    (row,) = asked.execute(
        f"SELECT {origin} - ({told})::timestamptz BETWEEN interval '0' AND interval '1 second',"
        f" ({kind.incoming(told)}) = ({copy})".encode()
    ).fetchall()
    assert row == (True, True)


def test_infinity_travels(asked: psycopg.Connection[tuple[object, ...]]) -> None:
    kind = MarkType(sql="timestamp(0)", descriptor="", kind="b", root="timestamp", zone=CAPE_TOWN, digits=0)
    for value in ("infinity", "-infinity"):
        told = kind.exact(f"{kind.incoming(repr(value))}")
        assert asked.execute(f"SELECT {told}".encode()).fetchone() == (value,)


def test_an_unknown_column_is_no_reason_to_fail(site: Site) -> None:
    site.run("CREATE TABLE customer (id int PRIMARY KEY)")
    table = read_tables(site.connection, [TABLE])[TABLE]
    assert len(list(mark_problems.problems(site.connection, "london", WANTED, table))) == 2
