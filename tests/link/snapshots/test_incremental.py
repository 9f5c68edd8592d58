"""Snapshots that follow their table: only what changed is read, exactly (S4-009 to S4-025)."""

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from concord.messages.errors import StructureChanged
from spark_jobs.snapshot import refresh
from tests.given.at_step import At
from tests.given.site import APPLICATION
from tests.given.snapshot_sites import LATE, Copies, content, counts
from tests.given.table_of_types import SAMPLE, by_type, insert_samples
from tests.given.values_of_types import OWN_TYPES

pytestmark = pytest.mark.spark


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


def test_a_refresh_asks_for_spark_from_a_thousand_changed_rows_on(late: Copies) -> None:
    asked = []

    def spark() -> SparkSession:
        asked.append(True)
        return late.spark()

    late.london.run("INSERT INTO flight SELECT n, 'EWR', n FROM generate_series(1001, 1999) n")
    assert refresh(late.job("late"), spark).inserted == 999
    assert not asked
    content(late)
    late.london.run("INSERT INTO flight SELECT n, 'EWR', n FROM generate_series(2000, 2999) n")
    assert refresh(late.job("late"), spark).inserted == 1_000
    assert asked
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
