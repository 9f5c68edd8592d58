"""A copy of some tables that is refused, or that takes long, claims nothing that is not so (F01)."""

from collections.abc import Callable
from time import sleep

import pytest

from concord.databases.registry import dialect
from concord.jobs.largest import Largest
from concord.messages.errors import ConcordError, SitesDiffer
from concord.transactional.replicate import replicate
from tests.given.copied_tables import (
    COPIED,
    copy,
    each_capture,
    goes_on,
    make_again,
    sites_with,
)
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]


@each_capture
def test_a_copy_without_replace_leaves_a_replication_that_runs_as_it_was(
    replicated: Make, capture: str
) -> None:
    """The table has rows: that is found before runs would refuse it."""
    sites = sites_with(replicated, capture)
    with pytest.raises(SitesDiffer, match=r"public\.item has rows already"):
        copy(sites, replace=False)
    goes_on(sites)


def test_a_log_that_is_lost_as_the_copy_begins_is_not_taken_for_a_new_one(replicated: Make) -> None:
    """A new log would begin at the copy: what the others wrote before would be passed over in silence."""
    sites = sites_with(replicated, "log")
    make_again(sites)

    def heard(step: str) -> None:
        if step == "slot":
            sites.london.drop_slots()

    before = sites.rows("place")[1]
    with pytest.raises(ConcordError, match="does not exist"):
        replicate(sites.job(initialize=True, replace=True, copied=COPIED), dialect, heard)
    assert sites.rows("place")[1] == before
    assert sites.capetown.value("SELECT level FROM concord.replay") < sites.london.value(
        "SELECT pg_current_wal_lsn() - '0/0'"
    )
    sites.initialize(replace=True)
    goes_on(sites)


@each_capture
def test_what_is_committed_after_the_snapshot_counts_as_waiting(replicated: Make, capture: str) -> None:
    """Lag and `max_delta` are measured from the moment up to which all is here."""
    sites = sites_with(replicated, capture)
    make_again(sites)
    committed = []

    def heard(step: str) -> None:
        if step == "copy":
            late = "INSERT INTO item VALUES (600, 'late') RETURNING clock_timestamp()"
            committed.append(sites.london.value(late))
            sleep(0.5)

    replicate(sites.job(initialize=True, replace=True, copied=COPIED), dialect, heard)
    here = sites.capetown.value("SELECT greatest(settled_at, level_at) FROM concord.replay")
    assert here < committed[0]
    assert (sites.run().entries, sites.are_equal()) == (1, True)


@each_capture
def test_the_brake_measures_what_is_replayed_of_a_transaction(replicated: Make, capture: str) -> None:
    """Its many bytes are of the copied table, and no run could let a person approve them."""
    sites = sites_with(replicated, capture, largest_transaction=Largest(bytes=20_000))
    sites.london.run(
        "BEGIN; INSERT INTO item SELECT n, repeat('x', 900) FROM generate_series(200, 300) n;"
        " INSERT INTO place VALUES (900, 1); COMMIT"
    )
    copy(sites)
    goes_on(sites)
