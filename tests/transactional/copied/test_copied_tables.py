"""A table that can no longer be followed is copied alone, while transactions of the others wait (F01)."""

from functools import partial
from threading import Event, Thread

import pytest

from concord.databases.registry import dialect
from concord.jobs.kept_history import KeptHistory
from concord.messages.errors import HistoryLost, NotInitialized, SitesDiffer, StructureChanged
from concord.transactional.replicate import replicate
from tests.given.at_step import At
from tests.given.copied_tables import (
    COPIED,
    HISTORIES,
    ITEM,
    NAMES,
    TABLES,
    WAITING,
    Make,
    copy,
    each_capture,
    goes_on,
    interrupt,
    make_again,
    refused,
    rewrite,
    sites_with,
)
from tests.given.killed_process import killed_at
from tests.given.replicated_sites import Replicated


@each_capture
@pytest.mark.parametrize("lost", ["made again", "interrupted"])
def test_a_table_that_cannot_be_followed_is_copied_alone(replicated: Make, capture: str, lost: str) -> None:
    """Waiting operations on the others are replayed, and their rows are not written again."""
    sites = sites_with(replicated, capture)
    if lost == "interrupted":
        interrupt(sites, capture)
    else:
        make_again(sites)
    refused(sites)
    untouched = "SELECT ctid::text, xmin::text FROM place WHERE id < 3 ORDER BY id"
    before = sites.capetown.rows(untouched)
    waiting = {"public.place": 2, "public.visit": 1 if lost == "interrupted" else 2}
    report = copy(sites)
    assert sites.capetown.rows(untouched) == before, "other tables are not copied"
    rows = sites.london.value("SELECT count(*) FROM item")
    assert {each.table: each.applied for each in report.tables} == {"public.item": rows, **waiting}
    goes_on(sites)


def test_a_column_whose_values_no_log_has_is_copied_with_its_table_alone(replicated: Make) -> None:
    sites = sites_with(replicated, "log")
    rewrite(sites, "log")
    with pytest.raises(HistoryLost, match=r"does not have all values.*`tables: \[public\.item\]`"):
        sites.run()
    copy(sites)
    assert sites.are_equal()
    sites.london.run("INSERT INTO item VALUES (100, 'later')")
    assert (sites.run().entries, sites.are_equal()) == (1, True)


def test_operations_that_triggers_captured_with_other_columns_ask_for_their_table_alone(
    replicated: Make,
) -> None:
    sites = sites_with(replicated, "triggers")
    sites.london.run("UPDATE item SET said = 'before'", *WAITING)
    for site in sites.sites:
        site.run("ALTER TABLE item ADD COLUMN place int")
    sites.provision()
    with pytest.raises(StructureChanged, match=r"public\.item: .*`tables: \[public\.item\]`"):
        sites.run()
    copy(sites)
    goes_on(sites)


@each_capture
def test_a_table_that_is_added_is_copied_alone(replicated: Make, capture: str) -> None:
    sites = replicated(TABLES, *NAMES, capture=capture)
    every = sites.tables
    sites.tables = every[1:]
    sites.provision()
    sites.london.run("INSERT INTO item VALUES (1, 'one')", "INSERT INTO place VALUES (1, 0), (2, 0)")
    sites.initialize()
    sites.tables = every
    sites.provision()
    sites.london.run(*WAITING)
    refused(sites)
    copy(sites, replace=False)
    goes_on(sites)


def lose(sites: Replicated, *, healthy: bool) -> None:
    """The copied table was made again, or could be followed all the while."""
    if healthy:
        sites.london.run(*WAITING, "BEGIN; DELETE FROM item; INSERT INTO visit (place) VALUES (2); COMMIT")
    else:
        make_again(sites)
    sites.london.run("INSERT INTO item VALUES (98, 'alone')")


def write_later(sites: Replicated) -> None:
    sites.london.run("UPDATE place SET visits = visits + 1 WHERE id = 1", "INSERT INTO item VALUES (99, 'x')")


@each_capture
@pytest.mark.parametrize("healthy", [False, True])
@pytest.mark.parametrize("step", ["slot", "stage", "replay", "confirm", "copy"])
def test_a_killed_copy_is_repeated_and_never_silently_behind(
    replicated: Make, step: str, capture: str, healthy: bool
) -> None:
    """Runs refuse the table until then; each entry of the others is replayed once."""
    sites = sites_with(replicated, capture)
    lose(sites, healthy=healthy)
    assert killed_at(step, partial(copy, sites))
    write_later(sites)
    refused(sites)
    assert sites.capetown.value("SELECT count(*) FROM item") == 5
    copy(sites)
    goes_on(sites)
    assert sites.capetown.value("SELECT conversions FROM concord.replay") == 0


@each_capture
@pytest.mark.parametrize("healthy", [False, True])
def test_a_copy_that_is_killed_after_its_commit_has_ended(
    replicated: Make, capture: str, healthy: bool
) -> None:
    """The publisher has not heard of its level, and its log has entries of the copied table before it."""
    sites = sites_with(replicated, capture)
    lose(sites, healthy=healthy)

    def work(at: At) -> None:
        def heard(step: str) -> None:
            if step == "copy":
                at.occurrence = at.reached + 1
            at(step)

        replicate(sites.job(initialize=True, replace=True, copied=COPIED), dialect, heard)

    assert killed_at("confirm", work, 1_000)
    write_later(sites)
    assert sites.run().entries == 2
    goes_on(sites)


@each_capture
def test_what_users_write_during_the_copy_arrives_once(replicated: Make, capture: str) -> None:
    """Transactions that write both kinds of tables: none is half replayed, before, at or after the snapshot."""
    sites = sites_with(replicated, capture)
    make_again(sites)
    ended = Event()

    def write(first: int) -> None:
        with sites.london.log_in(sites.london.superuser) as users:
            number = first
            while not ended.is_set():
                with users.transaction():
                    users.execute("INSERT INTO item VALUES (%s, 'during')", [number])
                    users.execute("INSERT INTO visit (place, item) VALUES (1, %s)", [number])
                    users.execute("UPDATE item SET said = said || '!' WHERE id = %s", [number - 3])
                with users.transaction():
                    users.execute("UPDATE place SET visits = visits + 1 WHERE id = 2")
                number += 1

    writers = [Thread(target=write, args=(first,)) for first in (1000, 100_000)]
    for each in writers:
        each.start()
    try:
        copy(sites)
        unpaired = "SELECT count(*) FROM item i FULL JOIN visit v ON v.item = i.id AND v.item >= 1000"
        assert not sites.capetown.value(f"{unpaired} WHERE i.id >= 1000 AND v.id IS NULL"), "at one moment"
    finally:
        ended.set()
        for each in writers:
            each.join()
    assert sites.run().conversions == 0
    goes_on(sites)


@each_capture
def test_a_truncate_of_several_tables_empties_the_others_alone(replicated: Make, capture: str) -> None:
    sites = sites_with(replicated, capture)
    sites.london.run("TRUNCATE item, visit", "INSERT INTO item VALUES (9, 'after')", *WAITING)
    copy(sites)
    goes_on(sites)


def test_the_others_may_have_been_altered_while_they_waited(replicated: Make) -> None:
    """Their operations are replayed with the columns of their time, those of the copied table are passed over."""
    sites = sites_with(replicated, "log")
    sites.london.run(*WAITING, "UPDATE item SET said = 'then'", "ALTER TABLE place ADD COLUMN city text")
    sites.london.run(
        "ALTER TABLE item DROP COLUMN said", "ALTER TABLE item ADD COLUMN said text DEFAULT 'new'"
    )
    sites.capetown.run(
        "ALTER TABLE place ADD COLUMN city text",
        "ALTER TABLE item DROP COLUMN said",
        "ALTER TABLE item ADD COLUMN said text DEFAULT 'new'",
    )
    sites.provision()
    sites.london.run(
        "UPDATE place SET city = 'here', visits = 7 WHERE id = 1", "INSERT INTO item VALUES (8, 'x')"
    )
    copy(sites)
    goes_on(sites)


def test_a_table_with_rows_is_copied_with_replace_alone(replicated: Make) -> None:
    sites = sites_with(replicated, "log")
    make_again(sites)
    with pytest.raises(SitesDiffer, match=r"public\.item has rows already"):
        copy(sites, replace=False)
    refused(sites)
    copy(sites)
    goes_on(sites)


@each_capture
def test_another_table_that_is_lost_as_well_is_named_with_it(replicated: Make, capture: str) -> None:
    sites = sites_with(replicated, capture)
    make_again(sites)
    sites.london.run("DROP TABLE visit", TABLES[2])
    sites.provision()
    with pytest.raises(HistoryLost, match=r"\(public\.visit\).*`tables: \[public\.item, public\.visit\]`"):
        copy(sites)
    copy(sites, copied=frozenset({"public.item", "public.visit"}))
    goes_on(sites)


def test_a_replication_that_was_never_initialized_is_copied_whole(replicated: Make) -> None:
    sites = replicated(TABLES, *NAMES)
    with pytest.raises(NotInitialized, match="was never initialized"):
        copy(sites)


def test_a_log_that_is_gone_asks_for_all_tables(replicated: Make) -> None:
    sites = sites_with(replicated, "log")
    sites.london.drop_slots()
    with pytest.raises(HistoryLost, match=r"the slot .* is gone"):
        copy(sites)


def test_a_history_gets_versions_of_the_copied_table_alone(replicated: Make) -> None:
    """It loses no version; the versions of another history stay as they are."""
    kept = {"public.item": KeptHistory(), "public.place": KeptHistory()}
    sites = replicated({"london": TABLES[:2], "capetown": HISTORIES}, *NAMES[:2], history=kept)
    sites.london.run("INSERT INTO item VALUES (1, 'one'), (2, 'two')", "INSERT INTO place VALUES (1, 0)")
    sites.initialize()
    sites.london.run("DROP TABLE item", ITEM, "INSERT INTO item VALUES (1, 'new')", WAITING[0])
    sites.provision()
    copy(sites)
    versions = "SELECT id, version, operation FROM {0} ORDER BY id, version"
    assert sites.capetown.rows(versions.format("item")) == [
        (1, 1, "I"),
        (1, 2, "U"),
        (2, 1, "I"),
        (2, 2, "D"),
    ]
    assert sites.capetown.rows(versions.format("place")) == [(1, 1, "I"), (3, 1, "I")]
