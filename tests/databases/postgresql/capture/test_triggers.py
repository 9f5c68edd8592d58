"""Every change of every user is captured, by triggers or from the log, and nothing of the applier's own (S0-17, S1-29,
S1-32)."""

import json
from typing import Any

import psycopg
import pytest

from tests.given.fixtures import MakePair, over_captures
from tests.given.site import APPLICATION, Site

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, price numeric)",
    "INSERT INTO book SELECT n, 'book ' || n, 1.0 FROM generate_series(1, 9) n",
)
FAR_FUTURE = 9_000_000_000_000_000


@pytest.fixture
def london(pair: MakePair) -> Site:
    return pair(*BOOK).london


def captured(site: Site) -> dict[int, tuple[str, bool, bool]]:
    """Key → (origin, deleted, born) of every change that the shadow table knows."""
    site.register()
    return {
        key: tuple(version)
        for key, *version in site.rows('SELECT id, origin, deleted, born FROM concord."public.book"')
    }


def version(site: Site, key: int) -> dict[str, Any]:
    site.register()
    ((changed_at, vector, position),) = site.rows(
        f'SELECT changed_at, vector, position::text FROM concord."public.book" WHERE id = {key}'
    )
    return {"changed_at": changed_at, "vector": vector, "position": int(position)}


CHANGED, INSERTED, DELETED = ("london#1", False, False), ("london#1", False, True), ("london#1", True, False)


@over_captures
def test_rows_that_nobody_has_changed_cost_nothing(london: Site) -> None:
    assert captured(london) == {}


@over_captures
def test_a_user_without_any_right_on_concord_is_captured(london: Site) -> None:
    """S1-42: marks stand in the shadow table, and users' tables keep their columns."""
    columns = (
        "SELECT array_agg(attname::text) FROM pg_attribute WHERE attrelid = 'book'::regclass AND attnum > 0"
    )
    assert london.rows(columns) == [(["id", "title", "price"],)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        london.as_application('SELECT * FROM concord."public.book"')
    london.as_application(
        "UPDATE book SET title = 'new' WHERE id = 1",
        "DELETE FROM book WHERE id = 2",
        "INSERT INTO book VALUES (10)",
    )
    assert captured(london) == {1: CHANGED, 2: DELETED, 10: INSERTED}


def test_a_user_cannot_call_the_capture_functions_or_write_the_shadow_table(london: Site) -> None:
    for captured_by in ("capture", "insert", "update", "delete"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            london.as_application(f'SELECT concord."{captured_by} public.book"()')
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        london.as_application('DELETE FROM concord."public.book"')


@over_captures
def test_a_user_who_sets_the_appliers_own_setting_is_still_captured(london: Site) -> None:
    london.as_application("SET LOCAL concord.applying = 'on'", "DELETE FROM book WHERE id = 1")
    assert captured(london) == {1: DELETED}


@over_captures
def test_the_applier_without_its_setting_is_an_ordinary_user(london: Site) -> None:
    london.as_applier("DELETE FROM public.book WHERE id = 1")
    assert captured(london) == {1: DELETED}


def test_the_applier_with_its_setting_is_not_captured(london: Site) -> None:
    london.as_applier(
        "SET LOCAL concord.applying = 'on'",
        "DELETE FROM public.book WHERE id = 1",
        "UPDATE public.book SET title = 'x' WHERE id = 2",
        "INSERT INTO public.book VALUES (10)",
    )
    assert captured(london) == {}


def test_the_appliers_setting_ends_with_its_transaction(london: Site) -> None:
    with london.log_in("link_applier") as connection:
        with connection.transaction():
            connection.execute("SET LOCAL concord.applying = 'on'")
        connection.execute("DELETE FROM public.book WHERE id = 1")
    assert captured(london) == {1: DELETED}


@over_captures
def test_another_tool_that_works_under_replica_role_is_captured(london: Site) -> None:
    """ENABLE ALWAYS: logical replication's apply silences ordinary triggers."""
    london.run("SET session_replication_role = replica", "DELETE FROM book WHERE id = 1")
    assert captured(london) == {1: DELETED}


def test_truncate_is_refused_with_a_way_out(london: Site) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match=r"replicated by Concord.*(?s:.*)Use DELETE"):
        london.as_application("TRUNCATE book")
    assert london.value("SELECT count(*) FROM book") == 9


def test_an_update_that_changes_nothing_is_not_a_change(london: Site) -> None:
    london.as_application("UPDATE book SET title = title, price = 1.0")
    assert captured(london) == {}


@over_captures
def test_an_update_that_only_changes_how_a_number_is_written_is_a_change(london: Site) -> None:
    """F69: 1.0 and 1.00 are equal and yet not the same to their user."""
    london.as_application("UPDATE book SET price = 1.00 WHERE id = 1")
    assert captured(london) == {1: CHANGED}


@over_captures
def test_a_key_change_is_a_tombstone_for_the_old_key_and_a_change_for_the_new_one(london: Site) -> None:
    # S1-29, F37
    london.as_application("UPDATE book SET id = 10 WHERE id = 1")
    assert captured(london) == {1: DELETED, 10: INSERTED}


@over_captures
def test_a_key_that_moves_away_and_back_is_live_again(london: Site) -> None:
    london.as_application("UPDATE book SET id = 10 WHERE id = 1", "UPDATE book SET id = 1 WHERE id = 10")
    assert captured(london) == {1: CHANGED, 10: ("london#1", True, True)}


@over_captures
def test_keys_shifted_by_one_statement_are_all_live_but_the_first(london: Site) -> None:
    london.as_application("UPDATE book SET id = -id")
    assert {key for key, (_, deleted, _) in captured(london).items() if deleted} == set(range(1, 10))
    assert {key for key, (_, deleted, _) in captured(london).items() if not deleted} == set(range(-9, 0))


@over_captures
def test_an_upsert_and_a_merge_are_captured_by_what_they_did(london: Site) -> None:
    london.as_application(
        "INSERT INTO book (id, title) VALUES (1, 'upserted'), (10, NULL)"
        " ON CONFLICT (id) DO UPDATE SET title = excluded.title",
        "MERGE INTO book b USING (VALUES (2), (11)) v (id) ON v.id = b.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (v.id)",
    )
    assert captured(london) == {1: CHANGED, 2: DELETED, 10: INSERTED, 11: INSERTED}


@over_captures
def test_copy_is_captured(london: Site) -> None:
    with (
        london.log_in(APPLICATION) as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY book (id, title) FROM STDIN") as copy,
    ):
        for key in range(100, 150):
            copy.write_row((key, "copied"))
    assert captured(london) == dict.fromkeys(range(100, 150), INSERTED)


@over_captures
def test_what_a_cascade_deletes_is_captured(pair: MakePair) -> None:
    london = pair(
        "CREATE TABLE book (id int PRIMARY KEY, part_of int REFERENCES book ON DELETE CASCADE)",
        "INSERT INTO book VALUES (1, NULL), (2, 1), (3, 2)",
    ).london
    london.as_application("DELETE FROM book WHERE id = 1")
    assert captured(london) == {1: DELETED, 2: DELETED, 3: DELETED}


@over_captures
def test_a_rollback_leaves_nothing(london: Site) -> None:
    with london.log_in(APPLICATION, autocommit=False) as connection:
        connection.execute("DELETE FROM book")
        connection.rollback()
    assert captured(london) == {}


@over_captures
def test_a_change_undone_by_a_savepoint_leaves_nothing(london: Site) -> None:
    london.as_application(
        "SAVEPOINT one", "DELETE FROM book", "ROLLBACK TO one", "UPDATE book SET title = 'kept' WHERE id = 1"
    )
    assert captured(london) == {1: CHANGED}


def test_the_position_of_a_change_in_a_subtransaction_is_the_top_level_transaction(london: Site) -> None:
    # F-3.1.3: a snapshot knows nothing of subtransaction ids
    with london.log_in(APPLICATION, autocommit=False) as connection:
        top = connection.execute("SELECT pg_current_xact_id()::text").fetchone()
        with connection.transaction():
            connection.execute("UPDATE book SET title = 'deep' WHERE id = 1")
        inner = connection.execute("SELECT xmin::text FROM book WHERE id = 1").fetchone()
        connection.commit()
    assert inner != top
    assert version(london, 1)["position"] == int(top[0])


def test_a_later_edit_is_later_even_when_the_clock_went_back(london: Site) -> None:
    vector = json.dumps({"london#1": [FAR_FUTURE, 0]})
    london.as_application("UPDATE book SET title = 'first' WHERE id = 1")
    london.run(f"""UPDATE concord."public.book" SET changed_at = {FAR_FUTURE}, vector = '{vector}'""")
    london.as_application("UPDATE book SET title = 'second' WHERE id = 1")
    london.as_application("DELETE FROM book WHERE id = 1")
    assert version(london, 1)["changed_at"] == FAR_FUTURE + 2
    assert version(london, 1)["vector"] == {"london#1": [FAR_FUTURE + 2, 0]}


@over_captures
def test_an_edit_is_later_than_everything_it_has_seen_of_other_sites(london: Site) -> None:
    vector = json.dumps({"capetown#1": [FAR_FUTURE, 3], "oslo#4": [5, 0]})
    london.as_application("UPDATE book SET title = 'first' WHERE id = 1")
    london.register()
    london.run(
        f"""UPDATE concord."public.book" SET origin = 'capetown#1', changed_at = {FAR_FUTURE}, derived = 3,
            received_from = 'capetown', vector = '{vector}'"""
    )
    london.as_application("UPDATE book SET title = 'second' WHERE id = 1")
    london.register()
    after = london.rows('SELECT origin, changed_at, derived, received_from FROM concord."public.book"')
    assert after == [("london#1", FAR_FUTURE + 1, 0, None)]
    assert version(london, 1)["vector"] == {
        "capetown#1": [FAR_FUTURE, 3],
        "oslo#4": [5, 0],
        "london#1": [FAR_FUTURE + 1, 0],
    }


@over_captures
@pytest.mark.parametrize(
    "vector",
    [
        {"london#1": [5, 0], "oslo#1": [FAR_FUTURE, 0]},
        {"oslo#1": [FAR_FUTURE, 0]},
        {"london#1": [FAR_FUTURE, 0], "oslo#1": [5, 0]},
    ],
    ids=["what another site did", "what only another site did", "a union with what this site did"],
)
@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE book SET title = 'x' WHERE id = 1",
        "UPDATE book SET title = 'x'",
        "UPDATE book SET id = 90 WHERE id = 1",
        "DELETE FROM book WHERE id = 1",
    ],
    ids=["one row", "more rows", "a key change", "a delete"],
)
def test_an_edit_is_later_than_what_a_row_has_seen_beside_its_own_version(
    london: Site, vector: dict[str, list[int]], edit: str
) -> None:
    london.as_application("UPDATE book SET title = 'first' WHERE id = 1")
    london.register()
    london.run(f"""UPDATE concord."public.book" SET changed_at = 5, vector = '{json.dumps(vector)}'""")
    london.as_application(edit)
    assert version(london, 1)["changed_at"] == FAR_FUTURE + 1


@over_captures
def test_no_stamp_is_below_the_floor(london: Site) -> None:
    london.run(f"UPDATE concord.site SET stamp_floor = {FAR_FUTURE}")
    london.as_application("UPDATE book SET title = 'x' WHERE id = 1")
    assert version(london, 1)["changed_at"] == FAR_FUTURE + 1


def test_two_edits_in_one_transaction_have_growing_stamps_and_one_position(london: Site) -> None:
    with london.log_in(APPLICATION, autocommit=False) as connection:
        connection.execute("UPDATE book SET title = 'a' WHERE id = 1")
        connection.execute("UPDATE book SET title = 'b' WHERE id = 2")
        connection.execute("UPDATE book SET title = 'c' WHERE id = 1")
        connection.commit()
    first, second = version(london, 1), version(london, 2)
    assert first["changed_at"] > second["changed_at"]
    assert first["position"] == second["position"]
