"""The kill points of docs/proof.md that are no step of a link (`test_steps.py` has those; points 7, 11, 12, 17,
20, 22). They are half of staging, between two statements of a table, a reply that is lost, an installation, and a
database that ends the session. Most drivers die in this process, so that each costs a second."""

import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest

from concord.databases.postgresql.provision import site_statements
from concord.databases.postgresql.transaction import one_transaction
from concord.databases.postgresql.write import merge
from concord.jobs.link import TransmissionReport
from concord.messages.errors import ConcordError
from embedded.postgres import Server
from spark_jobs.link import transmit
from tests.conftest import Database
from tests.given.at_step import At
from tests.given.fixtures import MakePair, site_on
from tests.given.goes_on import goes_on
from tests.given.killed_driver import killed
from tests.given.site import every_table, make_tables, provision_site
from tests.given.two_sites import Pair, begin
from tests.link.kills.edited_fleet import CONFLICTS, FLEET, FLIGHTS, PLANES, edit_both, is_as_if_never_killed

pytestmark = pytest.mark.spark

SEATS = ("CREATE TABLE seat (id int PRIMARY KEY, place int UNIQUE)", "INSERT INTO seat VALUES (1, 1), (2, 2)")


TABLES = ("TABLE plane ORDER BY id", "TABLE flight ORDER BY id")


class Crash(BaseException):
    """The driver dies here: nothing catches it."""


def die(*_: object, **__: object) -> None:
    raise Crash


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    made = pair(*FLEET)
    edit_both(made)
    return made


@pytest.mark.parametrize(
    ("step", "occurrence"),
    [("stage", 2), ("conflicts", 2), ("base", 2)],
    ids=["half of staging", "one table of two written", "k of n base rows"],
)
def test_a_driver_that_dies_between_the_tables_of_a_run(sites: Pair, step: str, occurrence: int) -> None:
    with pytest.raises(Crash):
        sites.run(at=At(step, die, occurrence))
    sites.settle()
    is_as_if_never_killed(sites)


def test_a_driver_that_dies_between_the_two_links(sites: Pair) -> None:
    """Point 20: its process has carried the one link, and is killed where it would begin the other."""
    there, back = (partial(transmit, sites.job(each), sites.spark) for each in ("forward", "reverse"))

    def both(stop: At) -> None:
        there(lambda step: None)
        stop("between the links")
        back(lambda step: None)

    london = [sites.london.rows(table) for table in TABLES]
    killed(sites, both, "between the links")

    assert [sites.capetown.rows(table) for table in TABLES] == [PLANES, FLIGHTS], "the first link stands"
    assert [sites.london.rows(table) for table in TABLES] == london, "nothing of the second does"
    assert [len(site.conflicts()) for site in (sites.london, sites.capetown)] == [0, len(CONFLICTS)]
    assert remembered(sites) == {"forward": [2, 2], "reverse": [1, 1]}

    again = sites.settle()  # from the first link on, as the run that is tried again does

    won_at_capetown = [5, 5, 0]
    assert [counts(each) for each in again] == [[0, 0, 0], won_at_capetown, [0, 0, 0], [0, 0, 0]]
    assert len(sites.london.conflicts()) == 0
    is_as_if_never_killed(sites)


def remembered(sites: Pair) -> dict[str, list[int]]:
    """How many sessions of each link London and Cape Town remember; the first one is of the common history."""
    query = "SELECT jsonb_array_length(history) FROM concord.link_state WHERE link = '{}/{}'"
    return {
        direction: [site.value(query.format(sites.synchronization, direction)) for site in sites.sites]
        for direction in ("forward", "reverse")
    }


def counts(report: TransmissionReport) -> list[int]:
    """Rows that were acquired, applied, lost."""
    return [report.total(each) for each in ("acquired", "applied", "lost")]


def test_a_driver_that_dies_when_unique_values_are_parked(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = pair(*SEATS)
    with sites.london.connection.transaction():
        sites.london.run("UPDATE seat SET place = -place", "UPDATE seat SET place = 3 + place")
    take_out = merge._take_out

    def take_out_and_die(*about: Any) -> None:
        take_out(*about)
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(merge, "_take_out", take_out_and_die)
        with pytest.raises(Crash):
            sites.run("forward")
    assert sites.capetown.rows("TABLE seat ORDER BY id") == [(1, 1), (2, 2)]

    sites.settle()

    assert sites.equal
    assert sites.capetown.rows("TABLE seat ORDER BY id") == [(1, 2), (2, 1)]


def test_a_commit_whose_reply_is_lost_is_known_by_the_links_state_and_not_repeated(
    sites: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F56."""
    attempt, tries = one_transaction._attempt, []

    def lost(connection: psycopg.Connection[Any], *about: Any, **more: Any) -> None:
        tries.append(connection)
        attempt(connection, *about, **more)
        with socket.socket(fileno=os.dup(connection.fileno())) as wire:
            wire.shutdown(socket.SHUT_RDWR)
        connection.execute("SELECT 'the reply that never comes'")

    with monkeypatch.context() as patched:
        patched.setattr(one_transaction, "_attempt", lost)
        with goes_on():
            report = sites.run("forward")

    assert len(tries) == 1
    assert report.total("acquired") == 7
    sites.settle()
    is_as_if_never_killed(sites)


def test_a_session_that_the_target_ends_in_the_middle_of_the_write(sites: Pair) -> None:
    def end_the_links_session() -> None:
        sites.capetown.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'concord write%' AND xact_start IS NOT NULL"
        )

    with pytest.raises(ConcordError) as stopped:
        sites.run("forward", At("shadow", end_the_links_session))
    assert stopped.value.transient
    sites.settle()
    is_as_if_never_killed(sites)


def test_a_source_that_goes_away_while_it_is_read_is_named_in_our_words(sites: Pair) -> None:
    """Found by the soak: the snapshot's end met the dead session, and its error hid what had gone wrong."""

    def end_the_readers() -> None:
        sites.london.run(
            "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'concord read%'"
        )

    with pytest.raises(ConcordError) as stopped:
        sites.run("forward", At("stage", end_the_readers))
    assert stopped.value.transient
    sites.settle()
    is_as_if_never_killed(sites)


@pytest.mark.parametrize("after", [4, 12, 20])
def test_an_installation_that_dies_half_way_leaves_nothing_and_is_done_by_the_next(
    request: pytest.FixtureRequest,
    server_with_logins: Server,
    database: Callable[[], Database],
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    london, capetown = (site_on(server_with_logins, name, database().name) for name in ("london", "capetown"))
    make_tables(london, FLEET)
    run, left = site_statements.run, [after]

    def dying(*about: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Crash
        return run(*about)

    with monkeypatch.context() as patched:
        patched.setattr(site_statements, "run", dying)
        with pytest.raises(Crash):
            provision_site(london, every_table(london))
    assert london.rows("SELECT tgname FROM pg_trigger WHERE tgname LIKE '%concord%'") == []
    assert london.value("SELECT to_regnamespace('concord')") is None

    london.run("DROP TABLE flight, plane")
    made = begin(london, capetown, FLEET, lambda: request.getfixturevalue("spark"))
    london.run("UPDATE plane SET seats = 7 WHERE id = 1")
    assert london.value('SELECT count(*) FROM concord."public.plane"') == 1
    for site in made.sites:
        site.connection.close()
