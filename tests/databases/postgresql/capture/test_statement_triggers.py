"""All rows that one statement changed are captured at once, whatever its rows, its triggers and its plan make of
it."""

import time
from dataclasses import replace

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.provision import site_statements
from concord.databases.postgresql.sites import state as site_state
from concord.rules.policy import Policy
from tests.given.bare_sites import installation
from tests.given.fixtures import MakePair
from tests.given.site import APPLICATION, APPLIER, READER, Site, provision_site
from tests.given.two_sites import Pair

#: Columns named as whatever a careless query would call its rows.
TABLES = (
    "CREATE TABLE book (id int PRIMARY KEY, n int, o int, gone text, here text, concord_x text)",
    "ALTER TABLE book DROP COLUMN gone",
    "INSERT INTO book SELECT g, 1 FROM generate_series(1, 9) g",
    "CREATE TABLE airport (code text PRIMARY KEY)",
    "CREATE TABLE flight (number int, day date, origin text REFERENCES airport ON UPDATE CASCADE,"
    " destination text REFERENCES airport ON UPDATE CASCADE, PRIMARY KEY (number, day))",
    "INSERT INTO airport VALUES ('LHR'), ('JFK')",
    "INSERT INTO flight VALUES (1, '2026-01-01', 'LHR', 'LHR'), (2, '2026-01-01', 'LHR', 'JFK')",
)
CHANGED, INSERTED, DELETED = (False, False), (False, True), (True, False)


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*TABLES)


@pytest.fixture
def london(sites: Pair) -> Site:
    return sites.london


def captured(site: Site, table: str = "book", key: str = "id") -> dict[object, tuple[bool, bool]]:
    """Key → (deleted, born)."""
    rows = site.rows(f'SELECT {key}, deleted, born FROM concord."public.{table}" ORDER BY 1')
    return {key: (deleted, born) for key, deleted, born in rows}


def acting(site: Site, when: str, body: str) -> None:
    """Give the books a trigger of the application's own."""
    site.run(
        f"CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$",
        f"CREATE TRIGGER act {when} EXECUTE FUNCTION act()",
    )


def test_only_the_rows_that_changed_of_a_statement_get_its_stamp(london: Site) -> None:
    london.run("UPDATE book SET n = 2 WHERE id > 7", 'TRUNCATE concord."public.book"')
    london.as_application("UPDATE book SET n = 2")
    assert captured(london) == dict.fromkeys(range(1, 8), CHANGED)
    assert (
        london.value('SELECT count(DISTINCT (changed_at, vector, position)) FROM concord."public.book"') == 1
    )


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE book SET n = 2 WHERE id = 1", {1: CHANGED}),
        ("UPDATE book SET n = n WHERE id = 1", {}),
        ("UPDATE book SET id = 11 WHERE id = 1", {1: DELETED, 11: INSERTED}),
        (
            "UPDATE book SET id = 11 - 10 * (id - 1), n = 2 WHERE id < 3",
            {1: CHANGED, 2: DELETED, 11: INSERTED},
        ),
        (
            "UPDATE book SET id = id + 9 * (id % 2), n = 2 WHERE id < 3",
            {1: DELETED, 2: CHANGED, 10: INSERTED},
        ),
        (
            "INSERT INTO book VALUES (1, 2), (2, 2), (12, 2) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
            {1: CHANGED, 2: CHANGED, 12: INSERTED},
        ),
        (
            "INSERT INTO book VALUES (1, 2), (12, 2) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
            {1: CHANGED, 12: INSERTED},
        ),
        (
            "MERGE INTO book USING (VALUES (1), (3)) x (id) ON book.id = x.id"
            " WHEN MATCHED AND book.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 2",
            {1: CHANGED, 3: DELETED},
        ),
        (
            "MERGE INTO book USING (VALUES (1), (2), (3)) x (id) ON book.id = x.id"
            " WHEN MATCHED AND book.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 2",
            {1: CHANGED, 2: CHANGED, 3: DELETED},
        ),
    ],
    ids=[
        "one row",
        "one row, unchanged",
        "one row, moved",
        "two rows, moved and reused",
        "two rows, one moved",
        "two rows, and one inserted",
        "one row, and one inserted",
        "one row merged, and one deleted",
        "two rows merged, and one deleted",
    ],
)
def test_one_row_or_two_are_captured_as_what_became_of_them(
    london: Site, statement: str, expected: dict[object, tuple[bool, bool]]
) -> None:
    london.as_application(statement)
    assert captured(london) == expected


def test_a_row_that_two_foreign_keys_change_in_one_statement_is_captured_once(london: Site) -> None:
    """PostgreSQL shows what both cascades did as one statement's rows: the same key twice."""
    london.as_application("UPDATE airport SET code = 'LGW' WHERE code = 'LHR'")
    assert captured(london, "flight", "number") == {1: CHANGED, 2: CHANGED}
    assert captured(london, "airport", "code") == {"LGW": INSERTED, "LHR": DELETED}


def test_a_key_that_one_statement_inserts_twice_is_captured_once(london: Site) -> None:
    acting(london, "BEFORE INSERT ON book FOR EACH ROW", "DELETE FROM book WHERE id = NEW.id; RETURN NEW;")
    london.as_application("INSERT INTO book VALUES (20, 1), (20, 2)")
    assert captured(london) == {20: CHANGED}
    assert london.rows("SELECT n FROM book WHERE id = 20") == [(2,)]


def test_what_a_users_trigger_deletes_of_the_statements_own_rows_is_deleted(london: Site) -> None:
    acting(london, "AFTER INSERT OR UPDATE ON book", "DELETE FROM book WHERE n < 0; RETURN NULL;")
    london.as_application("INSERT INTO book VALUES (20, -1), (21, 1)", "UPDATE book SET n = -n WHERE id = 1")
    assert {key: deleted for key, (deleted, _) in captured(london).items()} == {1: True, 20: True, 21: False}


def test_a_row_that_came_behind_the_back_of_capture_is_live_once_it_is_updated(london: Site) -> None:
    london.as_application("DELETE FROM book WHERE id = 1")
    london.run(
        "ALTER TABLE book DISABLE TRIGGER zz_concord_insert",
        "INSERT INTO book VALUES (1, 1)",
        "ALTER TABLE book ENABLE TRIGGER zz_concord_insert",
    )
    london.as_application("UPDATE book SET n = 2 WHERE id = 1")
    assert captured(london) == {1: CHANGED}


def test_a_row_that_a_statement_deletes_and_inserts_again_is_live(london: Site) -> None:
    """The insert ends first, and is told first."""
    london.as_application(
        "WITH moved AS (DELETE FROM book WHERE id < 3 RETURNING id) INSERT INTO book SELECT id FROM moved LIMIT 1"
    )
    left = london.value("SELECT min(id) FROM book")
    assert {key: deleted for key, (deleted, _) in captured(london).items()} == {left: False, 3 - left: True}


def test_keys_that_move_into_each_others_places_are_told_apart(london: Site) -> None:
    london.as_application("UPDATE book SET id = CASE id WHEN 9 THEN 10 ELSE 9 END, n = id WHERE id = 9")
    london.as_application("DELETE FROM book WHERE id = 8", "UPDATE book SET id = id - 2 WHERE id = 10")
    assert captured(london) == {8: (False, False), 9: DELETED, 10: (True, True)}


def test_a_column_that_was_added_since_is_watched_as_well(london: Site) -> None:
    london.run("ALTER TABLE book ADD note text")
    london.as_application("UPDATE book SET note = 'new' WHERE id = 1")
    assert captured(london) == {1: CHANGED}


@pytest.mark.parametrize(
    "parent", ["ALTER TABLE book INHERIT heir", "ALTER TABLE parts ATTACH PARTITION book DEFAULT"]
)
def test_a_captured_table_is_not_written_through_a_parent(london: Site, parent: str) -> None:
    london.run(
        "CREATE TABLE heir (id int)",
        "CREATE TABLE parts (id int NOT NULL, n int, o int, here text, concord_x text) PARTITION BY LIST (id)",
    )
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="ROW triggers with transition tables"):
        london.run(parent)


@pytest.mark.timeout(60)
def test_a_session_that_made_its_plan_for_one_row_changes_many_as_fast(london: Site) -> None:
    with london.log_in(APPLICATION) as connection:
        for key in range(1, 8):
            connection.execute("UPDATE book SET n = 5 WHERE id = %s", [key])
        connection.execute("INSERT INTO book SELECT g, 1 FROM generate_series(10, 20000) g")
        connection.execute("SET statement_timeout = '15s'")
        connection.execute("UPDATE book SET n = 6 WHERE id >= 10")
    assert london.value('SELECT count(*) FROM concord."public.book" WHERE changed_at > 0') == 19_998


def test_no_plan_of_captures_waits_for_a_compiler_whatever_it_was_made_for(london: Site) -> None:
    plans: list[str] = []
    with london.log_in(APPLICATION) as session:
        session.add_notice_handler(lambda notice: plans.append(notice.message_detail or ""))
        session.execute("SET jit = on; SET jit_above_cost = 0; SET debug_print_plan = on")
        session.execute("SET client_min_messages = log")
        for ids in ("1, 2", "3"):
            session.execute(f"UPDATE book SET n = 2 WHERE id IN ({ids})".encode())
    compiled = [":jitFlags 0" not in plan for plan in plans if ":jitFlags" in plan]
    assert compiled.count(True) == 2, "the user's own"
    assert compiled.count(False) >= 4, "of capture"


def test_where_no_statement_trigger_is_called_every_row_is_captured_once(london: Site) -> None:
    """Logical replication applies under replica role, and calls row triggers alone."""
    for role in ("replica", "origin"):
        london.run(
            f"SET session_replication_role = {role}",
            "INSERT INTO book VALUES (30)",
            "UPDATE book SET id = 31 WHERE id = 30",
            "UPDATE book SET n = n + 1 WHERE id = 1",
            "DELETE FROM book WHERE id = 31",
        )
        assert captured(london) == {1: CHANGED, 30: (True, True), 31: (True, True)}
        london.run('TRUNCATE concord."public.book"')
    fired = (
        "SELECT tgname, tgenabled::text FROM pg_trigger WHERE tgrelid = 'book'::regclass AND NOT tgisinternal"
    )
    by_row, by_statement = ("zz_concord_capture", "zz_concord_capture_update"), ("insert", "update", "delete")
    assert dict(london.rows(fired)) == {
        **dict.fromkeys(by_row, "R"),
        **{f"zz_concord_{event}": "O" for event in by_statement},
        "zz_concord_truncate": "A",
    }


def test_a_site_of_an_older_concord_is_brought_up_to_date_and_loses_no_history(sites: Pair) -> None:
    """It had triggers by the row alone, as a table that keeps before-images still has."""
    now = sites.london.rows("SELECT triggers FROM concord.replicated_table ORDER BY name")
    by_rows = [
        each.model_copy(update={"policy": Policy(resolvers=("merge_columns",))}) for each in sites.tables
    ]
    for site in sites.sites:
        provision_site(site, by_rows)
    assert len(sites.london.rows("SELECT 1 FROM pg_trigger WHERE tgname = 'zz_concord_update'")) == 0
    functions = "SELECT proname FROM pg_proc WHERE pronamespace = 'concord'::regnamespace"
    assert sites.london.rows(f"{functions} AND proname ~ '^(insert|update|delete) '") == []
    sites.london.run("UPDATE book SET n = 2 WHERE id = 1")
    assert captured(sites.london) == {1: CHANGED}
    initialized = "SELECT initialized FROM concord.link_state ORDER BY link"
    before = sites.london.rows(initialized)

    provisioning.provision([installation(site, sites.tables) for site in sites.sites])

    assert sites.london.rows("SELECT triggers FROM concord.replicated_table ORDER BY name") == now
    assert provisioning.check([installation(site, sites.tables) for site in sites.sites]) == []
    assert sites.london.rows(initialized) == before
    sites.london.run("UPDATE book SET n = 3 WHERE id = 2")
    assert captured(sites.london) == {1: CHANGED, 2: CHANGED}


def test_capture_by_the_row_is_provisioned_where_another_table_had_the_name_before(sites: Pair) -> None:
    sites.london.run(
        "CREATE TABLE novel (LIKE book INCLUDING ALL)",
        "ALTER TABLE book RENAME TO book_before",
        "ALTER TABLE novel RENAME TO book",
    )
    provision_site(sites.london, sites.tables)
    by_rows = [
        each.model_copy(update={"policy": Policy(resolvers=("merge_columns",))}) for each in sites.tables
    ]
    provision_site(sites.london, by_rows)
    sites.london.run('TRUNCATE concord."public.book"', "INSERT INTO book VALUES (1, 1)")
    assert captured(sites.london) == {1: INSERTED}
    sites.london.run("UPDATE book_before SET n = 2 WHERE id = 2")
    assert captured(sites.london) == {1: INSERTED}


def test_a_table_that_was_renamed_is_written_as_before(london: Site) -> None:
    """Its next run stops; its users go on, and what they do is known once it has its name again."""
    london.run("ALTER TABLE book RENAME TO novel")
    london.as_application("INSERT INTO novel VALUES (20), (21)", "UPDATE novel SET n = 2 WHERE id = 1")
    london.as_application(
        "DELETE FROM novel WHERE id IN (2, 3)",
        "INSERT INTO novel VALUES (2)",
        "DELETE FROM novel WHERE id = 21",
    )
    assert {key for key, (deleted, _) in captured(london).items() if deleted} == {3, 21}
    assert {key for key, (deleted, _) in captured(london).items() if not deleted} == {1, 2, 20}


def test_a_table_that_was_moved_out_of_sight_is_written_as_before(london: Site) -> None:
    """Concord's owner may not use the schema where it is now; the table's next run stops."""
    london.run(
        "CREATE SCHEMA elsewhere",
        f"GRANT USAGE ON SCHEMA elsewhere TO {APPLICATION}",
        "ALTER TABLE book SET SCHEMA elsewhere",
    )
    london.as_application("DELETE FROM elsewhere.book WHERE id = 1", "INSERT INTO elsewhere.book VALUES (1)")
    london.as_application(
        "INSERT INTO elsewhere.book VALUES (20)", "DELETE FROM elsewhere.book WHERE id = 20"
    )
    assert {key: deleted for key, (deleted, _) in captured(london).items()} == {1: False, 20: True}


def test_rows_that_a_policy_hides_are_not_captured_as_deleted(london: Site) -> None:
    london.run(
        "ALTER TABLE book ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY all_of_it ON book TO {APPLICATION} USING (true)",
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security policy"):
        london.as_application("DELETE FROM book WHERE id = 1", "INSERT INTO book VALUES (1)")
    assert captured(london) == {}


def test_what_stands_in_a_tables_place_is_not_read_with_the_rights_of_concords_owner(london: Site) -> None:
    london.run(f"GRANT CREATE ON SCHEMA public TO {APPLICATION}", f"ALTER TABLE book OWNER TO {APPLICATION}")
    london.as_application(
        "CREATE TABLE seen (by text)",
        "CREATE FUNCTION look(int) RETURNS boolean LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO public.seen VALUES (current_user); RETURN true; END'",
        "ALTER TABLE book RENAME TO novel",
        "CREATE VIEW book AS SELECT * FROM novel WHERE look(id)",
        "DELETE FROM novel WHERE id = 1",
        "INSERT INTO novel VALUES (1)",
    )
    assert london.rows("SELECT * FROM seen") == []
    assert captured(london) == {1: CHANGED}


def test_the_row_that_capture_asks_for_is_found_by_its_key_however_small_the_table_was(london: Site) -> None:
    london.run("VACUUM ANALYZE book", "ALTER TABLE book SET (autovacuum_enabled = off)")
    with london.log_in(APPLICATION) as connection:
        for key in range(20, 28):
            connection.execute("INSERT INTO book VALUES (%s)", [key])
        connection.execute("SET statement_timeout = '15s'")
        with connection.transaction():
            for _ in range(2):
                connection.execute("INSERT INTO book SELECT g, 1 FROM generate_series(100, 20000) g")
                connection.execute("DELETE FROM book WHERE id >= 100")
    assert london.value('SELECT count(*) FROM concord."public.book" WHERE deleted') == 19_901


def test_a_server_that_hides_some_of_a_merge_from_statements_captures_by_the_row(sites: Pair) -> None:
    """PostgreSQL's fix of 2026-02-12; our own servers have it."""
    site, fired = (
        sites.london,
        "SELECT tgname, tgenabled::text FROM pg_trigger WHERE tgrelid = 'book'::regclass",
    )
    fired += " AND NOT tgisinternal"
    found = site_state.read_site(site.connection, site.name, sites.tables, time.time())
    by_statements = site.rows(fired + " ORDER BY 1")
    for version, alone in ((160011, True), (160012, False), (180001, True), (190000, False)):
        state = replace(found, facts=replace(found.facts, version=version))
        state = replace(
            state, tables=site_state.read_site(site.connection, site.name, sites.tables, time.time()).tables
        )
        site_statements.provision(site.connection, state, READER, APPLIER)
        assert (site.rows(fired + " ORDER BY 1") != by_statements) == alone
        if alone:
            names = ("zz_concord_capture", "zz_concord_capture_update", "zz_concord_truncate")
            assert dict(site.rows(fired)) == dict.fromkeys(names, "A")
            site.run("UPDATE book SET n = n + 1 WHERE id = 1")
            assert captured(site) == {1: CHANGED}
