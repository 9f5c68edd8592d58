"""Snapshots: read-only copies of a query's content at another site, on real databases (S4-005 to S4-026)."""

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from concord.databases import provisioning
from concord.databases.postgresql.snapshot_provision import drop
from concord.databases.postgresql.tombstones import CarryingSite, SiteTombstones, clean
from concord.errors import BelowFloor, HistoryLost, IdentityChanged, ProvisioningRefused, StructureChanged
from embedded.postgres import Server
from spark_jobs.snapshot import refresh
from tests.conftest import Database
from tests.link.conftest import site_on
from tests.link.pair import APPLICATION, At
from tests.link.snapshots import Copies, counts
from tests.link.test_types import SAMPLE, by_type, insert_samples
from tests.link.values import OWN_TYPES

pytestmark = pytest.mark.spark

TABLES = (
    "CREATE TABLE flight (id int PRIMARY KEY, origin text, delay int, price numeric, note text)",
    "INSERT INTO flight SELECT n, CASE n % 2 WHEN 0 THEN 'JFK' ELSE 'LGA' END, n * 10, n / 4.0"
    " FROM generate_series(1, 10) n",
)
LATE = "SELECT id, delay FROM public.late ORDER BY id"
WANTED = "SELECT id, delay FROM public.flight WHERE delay > 50 ORDER BY id"


@pytest.fixture
def copies(
    request: pytest.FixtureRequest, server_with_logins: Server, database: Callable[[], Database]
) -> Iterator[Copies]:
    """London with ten flights; Cape Town empty; nothing provisioned."""
    london, capetown = (site_on(server_with_logins, name, database().name) for name in ("london", "capetown"))
    london.run(*TABLES)
    yield Copies(london, capetown, lambda: request.getfixturevalue("spark"))
    for site in (london, capetown):
        site.connection.close()


@pytest.fixture
def late(copies: Copies) -> Copies:
    """An incremental snapshot `late` of the flights that are more than 50 late, filled."""
    copies.define(
        "late", "incremental", "public.flight", "public.late", columns=("delay",), where="delay > 50"
    )
    copies.provision()
    assert counts(copies.refresh("late")) == (5, 0, 0, 0)
    return copies


def content(copies: Copies) -> None:
    """The copy is exactly what the query gives at the source."""
    assert copies.capetown.rows(LATE) == copies.london.rows(WANTED)


# --- non-incremental -----------------------------------------------------------------------------------------------


def test_a_query_is_copied_into_a_table_made_with_its_layout_and_replaced_by_every_refresh(
    copies: Copies,
) -> None:
    """S4-005, S4-020, S4-021: columns with the source's types; what is there already is not written again."""
    columns = ("id", "origin", "price")
    copies.define(
        "jfk", "non_incremental", "public.flight", "public.jfk", columns=columns, where="origin = 'JFK'"
    )
    copies.provision()
    made = (
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'jfk'::regclass AND attnum > 0"
    )
    assert copies.capetown.rows(made) == [("id", "integer"), ("origin", "text"), ("price", "numeric")]
    assert counts(copies.refresh("jfk")) == (5, 0, 0, 0)
    assert counts(copies.refresh("jfk")) == (0, 0, 0, 5)
    copies.london.run(
        "UPDATE flight SET price = 0.50 WHERE id = 2",  # 0.5 before: another form is another content
        "UPDATE flight SET origin = 'EWR' WHERE id = 4",
        "INSERT INTO flight VALUES (11, 'JFK', 0, NULL)",
        "DELETE FROM flight WHERE id = 6",
    )
    assert counts(copies.refresh("jfk")) == (2, 0, 3, 2)
    rows = copies.capetown.rows("SELECT id, price::text FROM jfk ORDER BY id")
    assert rows == [
        (2, "0.50"),
        (8, "2.0000000000000000"),
        (10, "2.5000000000000000"),
        (11, None),
    ]


def test_any_query_can_be_copied_through_a_view_with_repeated_rows_as_often_as_it_returns_them(
    copies: Copies,
) -> None:
    """Joins and aggregates without SQL in the configuration; rows without any key."""
    copies.london.run(
        "CREATE VIEW origins AS SELECT f.origin, g.n AS copies FROM flight f, generate_series(1, 2) g (n)"
    )
    copies.define("origins", "non_incremental", "public.origins", "public.origins")
    copies.provision()
    assert counts(copies.refresh("origins")) == (20, 0, 0, 0)
    copies.london.run("UPDATE flight SET origin = 'LGA' WHERE id = 2")
    assert counts(copies.refresh("origins")) == (2, 0, 2, 18)
    query = "SELECT origin, copies, count(*) FROM origins GROUP BY 1, 2 ORDER BY 1, 2"
    assert copies.capetown.rows(query) == copies.london.rows(query)
    copies.london.run("DELETE FROM flight")
    assert counts(copies.refresh("origins")) == (0, 0, 20, 0)


def test_a_reader_sees_the_content_before_or_after_a_refresh_and_nothing_else(copies: Copies) -> None:
    """S4-005: never empty, never mixed, and never kept waiting."""
    copies.define("all", "non_incremental", "public.flight", "public.copy")
    copies.provision()
    copies.refresh("all")
    copies.london.run("UPDATE flight SET note = 'new'")
    seen: list[tuple[int, int]] = []

    def look(step: str) -> None:
        with copies.capetown.log_in(copies.capetown.superuser) as reader:
            reader.execute("SET statement_timeout = '2s'")
            seen.append(reader.execute("SELECT count(*), count(note) FROM copy").fetchone())  # type: ignore[arg-type]

    refresh(copies.job("all"), copies.spark, look)
    assert set(seen) == {(10, 0), (10, 10)}
    assert seen == sorted(seen)
    assert copies.capetown.rows("SELECT count(note) FROM copy") == [(10,)]


KILLED_AT = [
    *(
        (step, False)
        for step in ("stage", "write", "hold_fence", "content", "link_state", "commit", "remember")
    ),
    *((step, True) for step in ("expect", "write", "content", "commit", "clean_up")),
]


@pytest.mark.parametrize(("step", "full"), KILLED_AT)
def test_a_refresh_that_is_killed_leaves_the_old_or_the_new_content_and_the_next_one_goes_on(
    late: Copies, step: str, full: bool
) -> None:
    late.london.run("DELETE FROM flight WHERE id = 6", "INSERT INTO flight VALUES (20, 'JFK', 99)")
    old, new = late.capetown.rows(LATE), late.london.rows(WANTED)

    class Killed(BaseException):
        pass

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        late.refresh("late", At(step, die), full=full)
    committed = step in ("remember", "clean_up")
    assert late.capetown.rows(LATE) == (new if committed else old)
    late.london.run("INSERT INTO flight VALUES (21, 'JFK', 70)")
    assert not late.refresh("late").full
    content(late)


def test_two_readers_share_a_large_table_in_one_snapshot(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concord.databases.postgresql.snapshot_query.PAGES_PER_READER", 5)
    copies.london.run(
        "INSERT INTO flight SELECT n, 'EWR', n, n, repeat('x', 100) FROM generate_series(11, 2000) n"
    )
    copies.define("all", "non_incremental", "public.flight", "public.copy")
    copies.provision()

    def edit() -> None:
        copies.london.run("UPDATE flight SET note = 'too late'", "INSERT INTO flight VALUES (0)")

    assert counts(copies.refresh("all", At("stage", edit))) == (2000, 0, 0, 0)
    assert copies.capetown.value("SELECT count(*) FROM copy WHERE note = 'too late'") == 0


# --- incremental ---------------------------------------------------------------------------------------------------


def test_an_incremental_snapshot_follows_its_table_and_rows_that_leave_the_filter_go(late: Copies) -> None:
    """S4-010, S4-013, T18: only what changed is read, exactly, with no tolerance."""
    late.london.run(
        "UPDATE flight SET delay = 51 WHERE id = 1",  # enters the filter
        "UPDATE flight SET delay = 50 WHERE id = 6",  # leaves it
        "UPDATE flight SET delay = 700 WHERE id = 7",  # stays
        "UPDATE flight SET note = 'not copied' WHERE id = 8",  # changes nothing of the copy
        "UPDATE flight SET delay = 1 WHERE id = 2",  # was never in it
        "DELETE FROM flight WHERE id = 9",
        "UPDATE flight SET id = 100 WHERE id = 10",  # a key change is a delete and an insert
    )
    report = late.refresh("late")
    assert not report.full
    assert counts(report) == (2, 1, 3, 2)
    content(late)


def test_a_late_commit_is_carried_by_the_next_refresh(late: Copies) -> None:
    """S4-013 without its tolerance (T02): stamped before a refresh read, committed after it."""
    with late.london.log_in(late.london.superuser, autocommit=False) as slow:
        slow.execute("UPDATE flight SET delay = 77 WHERE id = 1")
        late.london.run("UPDATE flight SET delay = 78 WHERE id = 2")
        assert counts(late.refresh("late")) == (1, 0, 0, 0)
    assert counts(late.refresh("late")) == (1, 0, 0, 0)
    content(late)


def test_an_unchanged_refresh_writes_no_row_of_the_copy(late: Copies) -> None:
    before = late.capetown.writes()["public.late"], late.london.writes()
    assert counts(late.refresh("late")) == (0, 0, 0, 0)
    assert counts(late.refresh("late", full=True)) == (0, 0, 0, 5)
    assert late.capetown.writes()["public.late"] == before[0]
    assert {name for name, rows in late.london.writes().items() if rows != before[1][name]} <= {
        "concord.site",
        "concord.link_state",
        "concord.synchronization",
    }


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_after_any_edits_the_copy_is_the_query(late: Copies, data: st.DataObject) -> None:
    keys, delays = st.integers(1, 12), st.one_of(st.none(), st.integers(40, 60))
    edits = data.draw(
        st.lists(
            st.one_of(
                st.builds(
                    "INSERT INTO flight VALUES ({0}, 'JFK', {1}) ON CONFLICT DO NOTHING".format,
                    keys,
                    delays.map(lambda delay: "NULL" if delay is None else delay),
                ),
                st.builds("UPDATE flight SET delay = {1} WHERE id = {0}".format, keys, st.integers(40, 60)),
                st.builds("DELETE FROM flight WHERE id = {}".format, keys),
                st.builds(
                    "UPDATE flight SET id = {1} WHERE id = {0}"
                    " AND NOT EXISTS (SELECT 1 FROM flight WHERE id = {1})".format,
                    keys,
                    keys,
                ),
            ),
            max_size=8,
        )
    )
    late.london.run(*edits)
    assert not late.refresh("late").full
    content(late)


def test_an_insert_of_a_row_that_is_there_updates_it_and_an_update_of_one_that_is_not_inserts_it(
    late: Copies,
) -> None:
    """S4-014, T10: whatever somebody with the right to lift the guard has done to the copy; each is counted."""
    late.capetown.run(
        "ALTER TABLE late DISABLE TRIGGER concord_snapshot",
        "DELETE FROM late WHERE id = 6",
        "INSERT INTO late VALUES (1, 0)",
        "ALTER TABLE late ENABLE ALWAYS TRIGGER concord_snapshot",
    )
    late.london.run(
        "UPDATE flight SET delay = 66 WHERE id = 6",
        "DELETE FROM flight WHERE id = 1",
        "INSERT INTO flight VALUES (1, 'JFK', 61)",
    )
    assert counts(late.refresh("late")) == (1, 1, 0, 0)
    content(late)


def test_unique_values_that_move_between_rows_are_never_in_the_way(late: Copies) -> None:
    late.capetown.run("CREATE UNIQUE INDEX ON late (delay)")
    late.london.run("UPDATE flight SET delay = 130 - delay WHERE id IN (6, 7)")
    assert counts(late.refresh("late")) == (0, 2, 0, 0)
    content(late)


def test_a_copy_is_read_only_for_everybody_but_its_refresh(late: Copies) -> None:
    """T10: nothing that a refresh would undo can be written, so that nothing is lost."""
    late.capetown.run(f"GRANT ALL ON late TO {APPLICATION}")
    for statement in (
        "DELETE FROM late",
        "UPDATE late SET delay = 0",
        "INSERT INTO late VALUES (0, 0)",
        "TRUNCATE late",
    ):
        for write in (late.capetown.as_application, late.capetown.as_applier, late.capetown.run):
            with pytest.raises(
                psycopg.Error, match=r"kept by Concord as the snapshot late|permission denied for table late"
            ):
                write(statement)
    late.capetown.run("ALTER TABLE late DISABLE TRIGGER concord_snapshot", "UPDATE late SET delay = 0")
    with pytest.raises(StructureChanged, match=r"capetown: public\.late has lost or changed its guard"):
        late.refresh("late")
    late.provision()
    report = late.refresh("late")
    assert report.full, "somebody may have edited rows that no change at the source would ever mend"
    content(late)


def test_a_copy_is_vacuumed_while_a_refresh_writes_it_and_its_guard_stands_until_the_commit(
    late: Copies,
) -> None:
    """Autovacuum takes the lock of this VACUUM, and would give way for as long as a refresh writes."""
    late.london.run("UPDATE flight SET delay = delay + 1")
    vacuumed, refused = [], []

    def meanwhile() -> None:
        late.capetown.run("SET lock_timeout = '300ms'", "VACUUM late")
        vacuumed.append(True)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            late.capetown.run("ALTER TABLE late DISABLE TRIGGER concord_snapshot")
        refused.append(True)

    late.refresh("late", at=At("commit", meanwhile))
    assert (vacuumed, refused) == ([True], [True])
    content(late)
    late.london.run("UPDATE flight SET delay = delay + 1")
    unguarded = At("content", lambda: late.capetown.run("ALTER TABLE late DISABLE TRIGGER concord_snapshot"))
    with pytest.raises(StructureChanged, match=r"capetown: public\.late has lost or changed its guard"):
        late.refresh("late", at=unguarded)


def test_a_definition_that_changed_is_filled_anew(late: Copies) -> None:
    late.define("late", "incremental", "public.flight", "public.late", columns=("delay",), where="delay > 80")
    report = late.refresh("late")
    assert report.full
    assert counts(report) == (0, 0, 3, 2)
    assert not late.refresh("late").full


def test_a_lost_position_is_refused_until_a_full_refresh_brings_it_back(late: Copies) -> None:
    """S4-025."""
    late.capetown.run("UPDATE concord.link_state SET history = jsonb_set(history, '{0,id}', '\"other\"')")
    late.london.run("DELETE FROM flight WHERE id = 6")
    before = late.capetown.rows(LATE)
    with pytest.raises(HistoryLost, match="snapshot refresh late --full"):
        late.refresh("late")
    assert late.capetown.rows(LATE) == before
    assert late.refresh("late", full=True).full
    content(late)
    assert not late.refresh("late").full


def test_a_full_refresh_that_is_killed_does_not_forget_that_tombstones_went_by_force(late: Copies) -> None:
    """Killed after the source heard of the session, before the target commits it (F32)."""
    late.london.run("DELETE FROM flight WHERE id = 9")
    (shadow,) = late.london.rows("SELECT shadow FROM concord.replicated_table")[0]
    late.london.run(
        f'DELETE FROM concord."{shadow}" WHERE deleted', "UPDATE concord.link_state SET forced_at = now()"
    )
    with pytest.raises(BelowFloor):
        late.refresh("late")

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        late.refresh("late", full=True, at=At("write", die))
    with pytest.raises(HistoryLost):
        late.refresh("late")
    late.refresh("late", full=True)
    content(late)


def test_a_source_that_went_back_is_refused_until_a_full_refresh(late: Copies) -> None:
    """F65: the heartbeat is lower than what the copy has read."""
    late.london.run("UPDATE concord.site SET heartbeat = 0", "DELETE FROM flight WHERE id = 6")
    with pytest.raises(IdentityChanged, match="snapshot refresh late --full"):
        late.refresh("late")
    assert late.refresh("late", full=True).full
    content(late)
    assert not late.refresh("late").full


def test_a_plan_writes_nothing_and_counts_what_a_refresh_would_do(late: Copies) -> None:
    late.define("all", "non_incremental", "public.flight", "public.copy")
    late.provision()
    late.refresh("all")
    late.london.run(
        "UPDATE flight SET delay = 0 WHERE id IN (7, 8)", "INSERT INTO flight VALUES (11, 'X', 60)"
    )
    before = late.capetown.writes(), late.london.writes()
    assert counts(late.refresh("late", plan_only=True)) == (0, 1, 2, 0)
    assert counts(late.refresh("late", plan_only=True, full=True)) == (1, 0, 2, 3)
    assert counts(late.refresh("all", plan_only=True)) == (3, 0, 2, 8)
    assert (late.capetown.writes(), late.london.writes()) == before


def test_a_snapshot_may_be_the_source_of_another(late: Copies) -> None:
    late.define("back", "incremental", "public.late", "public.returned", source="capetown", target="london")
    late.provision()
    late.refresh("back")
    late.london.run("UPDATE flight SET delay = 0 WHERE id = 6", "UPDATE flight SET delay = 71 WHERE id = 7")
    late.refresh("late")
    assert counts(late.refresh("back")) == (0, 1, 1, 0)
    assert late.london.rows("SELECT id, delay FROM returned ORDER BY id") == late.capetown.rows(LATE)


def test_every_value_of_every_type_is_copied_byte_for_byte(copies: Copies) -> None:
    copies.capetown.run(*OWN_TYPES)
    copies.london.run(*SAMPLE)
    insert_samples(copies.london, 1)
    copies.define("sample", "incremental", "public.sample", "public.sample")
    copies.provision()
    filled = copies.refresh("sample").inserted
    assert by_type(copies.capetown) == by_type(copies.london)
    assert counts(copies.refresh("sample", full=True)) == (0, 0, 0, filled)
    copies.london.run("UPDATE sample SET id = id + 100")
    assert counts(copies.refresh("sample")) == (filled, 0, filled, 0)
    assert by_type(copies.capetown) == by_type(copies.london)


# --- refusals ------------------------------------------------------------------------------------------------------


def refused(copies: Copies) -> str:
    with pytest.raises(ProvisioningRefused) as found:
        copies.provision()
    problems: tuple[str, ...] = found.value.problems  # type: ignore[assignment]
    assert all("\n" not in problem for problem in problems)
    return "\n".join(problems)


PLAIN = "CREATE TABLE copy (id int PRIMARY KEY, old text"


@pytest.mark.parametrize(
    ("kind", "table", "message", "prepare"),
    [
        ("any", "copy", "holds rows already", (f"{PLAIN})", "INSERT INTO copy VALUES (1, 'x')")),
        ("any", "copy", "has no column old", ("CREATE TABLE copy (id int PRIMARY KEY)",)),
        ("any", "copy", "column id is bigint, and integer at", ("CREATE TABLE copy (id bigint, old text)",)),
        ("incremental", "copy", "no immediate unique index on", ("CREATE TABLE copy (id int, old text)",)),
        ("any", "copy", "has the column more, which", (f"{PLAIN}, more int)",)),
        (
            "any",
            "copy",
            "has the foreign key",
            ("CREATE TABLE other (name text PRIMARY KEY)", f"{PLAIN} REFERENCES other)"),
        ),
        ("any", "reports.copy", "there is no schema reports; create it first", ()),
    ],
)
def test_an_existing_destination_that_does_not_fit_is_refused_in_one_line(
    copies: Copies, kind: str, table: str, message: str, prepare: tuple[str, ...]
) -> None:
    """S4-024."""
    copies.london.run("CREATE TABLE plain (id int PRIMARY KEY, old text)")
    copies.capetown.run(*prepare)
    where = table if "." in table else f"public.{table}"
    copies.define("plain", "non_incremental" if kind == "any" else kind, "public.plain", where)
    assert message in refused(copies)
    assert copies.capetown.value("SELECT to_regclass('concord.site')") is None


@pytest.mark.parametrize(
    ("kind", "source", "changed", "message"),
    [
        ("incremental", "public.keyless", {}, "has no primary key"),  # S4-009
        ("incremental", "public.a_view", {}, "is not a plain table"),  # S4-008
        ("non_incremental", "public.missing", {}, "does not exist"),
        ("non_incremental", "public.a_view", {"columns": ("idd",)}, "has no column idd"),
        ("non_incremental", "public.priced", {}, "does not round-trip exactly"),
        ("non_incremental", "public.flight", {"where": "colour = 'red'"}, "filters by colour"),
    ],
)
def test_a_source_that_cannot_be_copied_is_refused_in_one_line(
    copies: Copies, kind: str, source: str, changed: dict[str, object], message: str
) -> None:
    copies.london.run(
        "CREATE TABLE keyless (id int)",
        "CREATE VIEW a_view AS SELECT id FROM flight",
        "CREATE VIEW priced AS SELECT id, price::money FROM flight",
    )
    copies.define("copy", kind, source, "public.copy", **changed)
    assert message in refused(copies)


# --- dropping ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_table", [True, False])
def test_a_dropped_snapshot_leaves_nothing_behind_but_its_table_if_wanted(
    late: Copies, with_table: bool
) -> None:
    """S4-026, S4-017."""
    for site in late.sites:
        drop(site.credentials(site.superuser), site.name, "late", with_table=with_table)
    for site in late.sites:
        assert site.rows("TABLE concord.link_state") == []
        assert site.rows("TABLE concord.replicated_table") == []
        triggers = "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE '%concord%'"
        assert site.rows(triggers) == [("concord.conflict",)], "the ledger keeps its own"
    assert late.capetown.value("SELECT to_regclass('public.late') IS NULL") is with_table
    late.london.run("TRUNCATE flight")
    if not with_table:
        late.capetown.run("DELETE FROM late WHERE id = 6")
        assert late.capetown.value("SELECT count(*) FROM late") == 4


def test_a_table_that_a_view_depends_on_is_not_dropped(late: Copies) -> None:
    late.capetown.run("CREATE VIEW report AS SELECT * FROM late")
    with pytest.raises(StructureChanged, match=r"view public\.report depends on"):
        drop(late.capetown.credentials(late.capetown.superuser), "capetown", "late", with_table=True)
    assert late.refresh("late").unchanged == 0


def test_concord_is_removed_and_the_copy_stays(late: Copies) -> None:
    assert provisioning.check(late.installations()) == []
    provisioning.remove(late.installations())
    late.capetown.run("DELETE FROM late WHERE id = 6")
    assert late.capetown.value("SELECT count(*) FROM late") == 4


# --- tombstones ----------------------------------------------------------------------------------------------------


def test_tombstones_wait_for_an_incremental_snapshot_and_then_go(late: Copies) -> None:
    """S4-018, rule 10: a snapshot that has been refreshed counts as a link out of its source."""
    tracked = late.snapshots["late"].tracked
    assert tracked is not None
    carrying = [CarryingSite(late.london.access, {tracked.name: {}}, (tracked,))]

    def cleaned() -> SiteTombstones:
        (found,) = clean(carrying, dry_run=False, now_us=time.time_ns() // 1000, min_age_us=0).tables
        return found

    late.london.run("DELETE FROM flight WHERE id = 6")
    waiting = cleaned()
    assert (waiting.held, waiting.removed) == (1, 0)
    assert [(each.link, each.tombstones) for each in waiting.held_back] == [("snapshot/late/forward", 1)]
    old = late.capetown.value("SELECT history FROM concord.link_state")
    late.refresh("late")
    assert cleaned().removed == 1
    content(late)
    late.capetown.connection.execute("UPDATE concord.link_state SET history = %s", (Jsonb(old),))
    with pytest.raises(BelowFloor, match="snapshot refresh late --full"):
        late.refresh("late")
    late.refresh("late", full=True)
    content(late)


@pytest.mark.parametrize(
    ("copied", "full"), [("public.flight", True), ("public.seen", True), ("public.flight", False)]
)
def test_a_table_that_is_rewritten_while_it_is_read_does_not_empty_its_copy(
    late: Copies, copied: str, full: bool
) -> None:
    """F87: to a snapshot that is older than the rewrite every row is gone, also below views."""
    late.london.run(
        "CREATE VIEW seen_below AS SELECT id, delay FROM flight", "CREATE VIEW seen AS TABLE seen_below"
    )
    name = "late"
    if full:
        name = "whole"
        late.define(name, "non_incremental", copied, "public.whole", columns=("id", "delay"))
        late.provision()
        late.refresh(name)
    table = f"SELECT id, delay FROM public.{name} ORDER BY id"
    before = late.capetown.rows(table)
    late.london.run("UPDATE flight SET delay = 1000 WHERE id = 9")
    rewrite = At("count", lambda: late.london.run("ALTER TABLE flight ALTER note TYPE text USING note || ''"))
    with pytest.raises(
        StructureChanged, match=r"london: (public\.)?flight was rewritten while public\.\w+ was read"
    ):
        late.refresh(name, at=rewrite)
    assert late.capetown.rows(table) == before
    late.refresh(name)
    assert (9, 1000) in late.capetown.rows(table)
