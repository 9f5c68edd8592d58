"""A site whose log is read fails over to its standby, or its files are put back. Its links stop, and write nothing;
when it comes back, no edit that it holds is lost."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from concord.databases.postgresql.facts.own_schema import capture_slot
from concord.messages.errors import ConcordError, HistoryLost, IdentityChanged
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on
from tests.given.logged_pair import BOOK, at_rest, insert, retitle, title
from tests.given.mortal_site import copy, mortal_server, moved, put_back, while_stopped
from tests.given.site import Site, provision_site
from tests.given.standby import FOLLOWING_SLOTS, cut_off, follow, follow_slot, promote, standby_of
from tests.given.strangers import initialized
from tests.given.two_sites import Pair, begin

pytestmark = pytest.mark.spark

SHELF = (
    "CREATE TABLE shelf (id int PRIMARY KEY, note text)",
    "INSERT INTO shelf VALUES (1, 'as loaded'), (2, 'as loaded')",
)
#: Cheap to make; its log can be read.
SETTINGS = {"fsync": "off", "wal_level": "logical", "max_slot_wal_keep_size": "50GB"}

MakeSites = Callable[[Server], Pair]


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = mortal_server(tmp_path_factory.mktemp("mortal") / "server", **SETTINGS)
    yield server
    server.remove()


@pytest.fixture
def sites_with(
    request: pytest.FixtureRequest, server_with_logins: Server, database: Callable[[], Database]
) -> Iterator[MakeSites]:
    """Call it with Cape Town's own server."""
    made: list[Pair] = []

    def make(server: Server) -> Pair:
        server.drop_database("capetown")
        server.create_database("capetown")
        london = site_on(server_with_logins, "london", database().name, by_log=True)
        capetown = site_on(server, "capetown", "capetown", by_log=True)
        made.append(begin(london, capetown, (*BOOK, *SHELF), lambda: request.getfixturevalue("spark")))
        return made[-1]

    yield make
    for each in made:
        each.london.close()
        each.capetown.connection.close()


def refused(sites: Pair, error: type[ConcordError], why: str) -> None:
    """Either link is, and nothing but its epoch was written at either site."""
    before = [site.stored for site in sites.sites]
    for direction in ("forward", "reverse"):
        with pytest.raises(error, match=why):
            sites.run(direction)
    for site, was in zip(sites.sites, before, strict=True):
        assert site.written_since(was) <= {"concord.synchronization"}


def books(sites: Pair) -> dict[int, str]:
    return {book: str(title(sites.london, book)) for (book,) in sites.london.rows("SELECT id FROM book")}


def slot_name(site: Site) -> str:
    return capture_slot(int(site.value("SELECT oid FROM pg_database WHERE datname = current_database()")))


def edit_unregistered(site: Site) -> None:
    """The standby gets these, and no link has looked at the log since."""
    retitle(site, 1, "not sent")
    insert(site, 11, "not sent")
    site.as_application("DELETE FROM book WHERE id IN (2, 6)", "UPDATE shelf SET note = 'kept' WHERE id = 1")


def fail_over(sites: Pair, primary: Server, standby: Server) -> None:
    """The primary dies with an edit that a link has carried, and that the standby never got."""
    cut_off(standby)
    sites.capetown.as_application("UPDATE shelf SET note = 'lost' WHERE id = 2")
    sites.run("reverse", chosen=("public.shelf",))
    sites.capetown.connection.close()
    primary.crash()
    promote(standby)
    moved(sites.capetown, standby)


def edit_after(sites: Pair) -> None:
    retitle(sites.capetown, 3, "after")
    insert(sites.capetown, 12, "after")
    retitle(sites.london, 4, "london")
    sites.london.as_application("DELETE FROM book WHERE id = 5")


def has_come_back(sites: Pair) -> dict[int, str]:
    """All that the site held is everywhere, and what it had sent and lost is back. Returns the titles."""
    assert at_rest(sites)
    assert sites.capetown.value("SELECT origin FROM concord.site") == "capetown#2"
    assert sites.london.rows("TABLE shelf ORDER BY id") == [(1, "kept"), (2, "lost")]
    assert sites.conflicts() == []
    found = books(sites)
    assert {each: found.get(each) for each in (1, 3, 4, 5, 6, 11, 12)} == {
        **{1: "not sent", 3: "after", 4: "london", 5: None, 6: None},
        **{11: "not sent", 12: "after"},
    }
    retitle(sites.capetown, 8, "goes on")
    retitle(sites.london, 9, "goes on")
    assert at_rest(sites)
    assert (title(sites.london, 8), title(sites.capetown, 9)) == ("goes on", "goes on")
    return found


def test_a_site_put_back_from_a_copy_of_its_files_is_refused_and_its_log_is_read_on(
    sites_with: MakeSites, mortal: Server
) -> None:
    """S1-32 b, F65: the slot came back with the files, and stands where the copy was made."""
    sites = sites_with(mortal)
    retitle(sites.capetown, 6, "sent before")
    sites.settle()
    edit_unregistered(sites.capetown)
    backup = mortal.data.parent / "backup"
    while_stopped(sites.capetown, mortal, lambda data: copy(data, backup))
    sites.capetown.as_application("UPDATE shelf SET note = 'lost' WHERE id = 2")
    sites.run("reverse", chosen=("public.shelf",))
    while_stopped(sites.capetown, mortal, lambda data: put_back(backup, data))
    edit_after(sites)
    refused(sites, IdentityChanged, "restored from a backup, or a clone of it ran in its place")
    initialized(sites, accept_restored=True)
    assert 2 not in has_come_back(sites), "the log has told of the delete"


def test_a_standby_without_the_slot_is_refused_and_none_of_its_edits_is_lost(
    sites_with: MakeSites, mortal: Server, tmp_path: Path
) -> None:
    """S1-32 b, F66: nobody has read the log of what the standby's users did."""
    sites = sites_with(mortal)
    with standby_of(mortal, tmp_path / "standby") as standby:
        retitle(sites.capetown, 6, "sent before")
        sites.settle()
        edit_unregistered(sites.capetown)
        follow(standby, mortal)
        fail_over(sites, mortal, standby)
        edit_after(sites)
        refused(sites, IdentityChanged, "restored or failed over")
        with pytest.raises(HistoryLost, match=r"is gone, and with it the log; run `provision` first"):
            initialized(sites, accept_restored=True)
        assert sites.capetown.value("SELECT incarnation FROM concord.site") == 1, "no new life yet"
        provision_site(sites.capetown, sites.tables)
        refused(sites, IdentityChanged, "restored or failed over")
        initialized(sites, accept_restored=True)
        assert has_come_back(sites)[2] == "book 2", "a delete of a row without a version leaves no trace"
        sites.capetown.connection.close()
        standby.remove()


def test_a_standby_with_the_slot_loses_nothing(sites_with: MakeSites, tmp_path: Path) -> None:
    """S1-32 b: from PostgreSQL 17 on the slot is a failover slot."""
    primary = mortal_server(tmp_path / "primary", version=18, **SETTINGS, **FOLLOWING_SLOTS)
    sites = sites_with(primary)
    with standby_of(primary, tmp_path / "standby") as standby:
        retitle(sites.capetown, 6, "sent before")
        sites.settle()
        follow_slot(standby, primary, slot_name(sites.capetown), sites.capetown.register)
        edit_unregistered(sites.capetown)
        follow(standby, primary)
        fail_over(sites, primary, standby)
        edit_after(sites)
        refused(sites, IdentityChanged, "restored or failed over")
        initialized(sites, accept_restored=True)
        assert 2 not in has_come_back(sites), "the log has told of the delete"
        sites.capetown.connection.close()
        standby.remove()
    primary.remove()
