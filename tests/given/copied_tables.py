"""A replication of three tables, one of which can no longer be followed and is copied alone."""

from collections.abc import Callable

import pytest

from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import HistoryLost
from tests.given.at_step import At
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]
ITEM = "CREATE TABLE item (id int PRIMARY KEY, said text)"
TABLES = (
    "CREATE TABLE place (id int PRIMARY KEY, visits int)",
    ITEM,
    "CREATE TABLE visit (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, place int REFERENCES place, item int)",
)
VERSIONED = (
    ", version bigint, operation text, committed_at timestamptz, entry bigint, PRIMARY KEY (id, version))"
)
HISTORIES = (
    f"CREATE TABLE item (id int, said text{VERSIONED}",
    f"CREATE TABLE place (id int, visits int{VERSIONED}",
)
NAMES = ("public.item", "public.place", "public.visit")
COPIED = frozenset({"public.item"})
WAITING = (
    "INSERT INTO place VALUES (3, 0)",
    "INSERT INTO visit (place) VALUES (3)",
    "UPDATE place SET visits = visits + 1 WHERE id = 3",
)
CAPTURES = ["log", "triggers"]
each_capture = pytest.mark.parametrize("capture", CAPTURES)


def sites_with(replicated: Make, capture: str, **settings: object) -> Replicated:
    sites = replicated(TABLES, *NAMES, capture=capture, **settings)
    sites.london.run(
        "INSERT INTO place VALUES (1, 0), (2, 0)",
        "INSERT INTO item SELECT n, 'item ' || n FROM generate_series(1, 5) n",
        "INSERT INTO visit (place, item) VALUES (1, 1), (2, 2)",
    )
    sites.initialize()
    return sites


def make_again(sites: Replicated) -> None:
    """Users write the old table, then the new one; others wait beside it."""
    sites.london.run(
        "UPDATE item SET said = 'of the old table'",
        *WAITING,
        "DROP TABLE item",
        ITEM,
        "INSERT INTO item SELECT n, 'new ' || n FROM generate_series(4, 12) n",
    )
    sites.provision()
    sites.london.run("BEGIN; UPDATE item SET said = 'both'; INSERT INTO visit (place) VALUES (2); COMMIT")


def copy(sites: Replicated, at: At | None = None, **changed: object) -> ReplicationReport:
    how = {"initialize": True, "replace": True, "copied": COPIED}
    return sites.run(at, **(how | changed))


def refused(sites: Replicated) -> None:
    with pytest.raises(HistoryLost, match=r"\(public\.item\).*initialize__.*`tables: \[public\.item\]`"):
        sites.run()


def goes_on(sites: Replicated) -> None:
    """Later changes of all tables arrive."""
    assert sites.are_equal()
    sites.london.run(
        "INSERT INTO item VALUES (100, 'later')", "INSERT INTO visit (place, item) VALUES (1, 100)"
    )
    report = sites.run()
    assert (report.entries, report.conversions, sites.are_equal()) == (2, 0, True)


def interrupt(sites: Replicated, capture: str) -> None:
    stops = (
        "ALTER PUBLICATION concord_operations DROP TABLE item"
        if capture == "log"
        else 'DROP TRIGGER "RI_concord_operation" ON item'
    )
    sites.london.run(*WAITING, stops, "INSERT INTO item VALUES (50, 'not captured')")
    sites.provision()
    sites.london.run("UPDATE item SET said = 'captured again' WHERE id = 1")


def rewrite(sites: Replicated, capture: str) -> None:
    """The log does not have the values of such a column; triggers capture no operation of the time before."""
    for site in sites.sites:
        site.run("ALTER TABLE item ADD COLUMN at timestamptz DEFAULT clock_timestamp()")
    sites.provision()
    sites.london.run(*WAITING)
