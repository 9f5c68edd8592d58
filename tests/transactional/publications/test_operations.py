"""An entry at the subscriber: its operations, one after the other, each on one row, and then a commit."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from concord.databases.registry import dialect
from concord.messages.errors import EntryConflict
from concord.transactional.upkeep import shown
from tests.given.refused_entry import stopped_at
from tests.given.replicated_sites import Replicated

TABLES = (
    "CREATE TABLE a (id int PRIMARY KEY, n int)",
    "CREATE TABLE b (id int PRIMARY KEY, n int)",
)
#: Takes down each row that is written, although other triggers stay silent: for which entry, and how it is then.
SEEN = (
    "CREATE TABLE seen (level bigint, wrote text, id int, n int, transaction text DEFAULT pg_current_xact_id()::text,"
    " place bigint GENERATED ALWAYS AS IDENTITY)",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$DECLARE r record; BEGIN"
    " r := coalesce(NEW, OLD); INSERT INTO public.seen (level, wrote, id, n)"
    " SELECT level, TG_OP || ' ' || TG_TABLE_NAME, r.id, r.n FROM concord.replay; RETURN NULL; END$$",
    *(
        f"CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION note();"
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER note"
        for table in "ab"
    ),
)
FIRST = [
    ("INSERT a", 1, 0),
    ("INSERT b", 1, 5),
    ("INSERT b", 2, 5),
    ("UPDATE a", 1, 1),
    ("DELETE b", 1, 5),
    ("INSERT b", 1, 7),
    ("UPDATE b", 1, 8),
    ("UPDATE b", 2, 6),
    ("UPDATE a", 1, 2),
]
SECOND = [("UPDATE b", 2, 9), ("DELETE a", 1, 2)]


@pytest.fixture
def sites(capture: str, replicated: Callable[..., Replicated]) -> Replicated:
    made = replicated(TABLES, "public.a", "public.b", capture=capture)
    made.initialize()
    made.capetown.run(*SEEN)
    return made


def test_each_operation_is_done_once_in_its_place_on_its_one_row_and_each_entry_is_committed(
    sites: Replicated,
) -> None:
    """S0-15, S0-27 to S0-29, S0-34, S0-37 to S0-39, T09, T12: values between two commits arrive as well."""
    with sites.london.log_in(sites.london.superuser, autocommit=False) as user:
        user.execute("INSERT INTO a VALUES (1, 0)")
        user.execute("INSERT INTO b VALUES (1, 5), (2, 5)")
        user.execute("UPDATE a SET n = 1")
        user.execute("DELETE FROM b WHERE id = 1")
        user.execute("INSERT INTO b VALUES (1, 7)")
        for key in (1, 2):
            user.execute("UPDATE b SET n = n + 1 WHERE id = %s", (key,))
        user.execute("UPDATE a SET n = 2")
        user.commit()
        user.execute("UPDATE b SET n = 9 WHERE id = 2")
        user.execute("DELETE FROM a")
    report = sites.run()
    assert (report.entries, report.operations, report.conversions) == (2, 11, 0)
    assert written(sites) == [FIRST, SECOND], "the last one too: a new session sees it"
    assert sites.are_equal()


def written(sites: Replicated) -> list[list[tuple[Any, ...]]]:
    """By entry, each of which is one transaction of the subscriber's."""
    found = sites.capetown.rows("SELECT level, transaction, wrote, id, n FROM seen ORDER BY place")
    return [[tuple(each[2:]) for each in rows] for _, rows in groupby(found, key=lambda row: row[:2])]


def test_an_entry_of_both_ways_has_each_row_as_it_was_and_as_it_is(
    replicated: Callable[..., Replicated],
) -> None:
    """S4-153: an insert all values, an update old and new ones, a delete the old ones; each with its key."""
    sites = replicated(TABLES, "public.a", updates="both")
    sites.london.run("INSERT INTO a VALUES (1, 1), (2, 2)")
    sites.initialize_both_ways()
    sites.london.run(
        "BEGIN; INSERT INTO a VALUES (3, 3); UPDATE a SET n = 9 WHERE id = 1; DELETE FROM a WHERE id = 2; COMMIT"
    )
    sites.capetown.run("UPDATE a SET n = 7 WHERE id = 1")
    with pytest.raises(EntryConflict) as refused:
        sites.run()
    number = stopped_at(refused.value)
    assert [
        (each.operation, each.key, each.before, each.row) for each in shown(sites.job(), dialect, number)
    ] == [
        ("insert", None, None, {"id": 3, "n": 3}),
        ("update", {"id": 1}, {"id": 1, "n": 1}, {"id": 1, "n": 9}),
        ("delete", {"id": 2}, {"id": 2, "n": 2}, None),
    ]
