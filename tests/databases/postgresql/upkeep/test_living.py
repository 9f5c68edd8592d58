"""Versions of living rows that every link of every site has passed are agreed and forgotten, as tombstones are (rule
10, S4-018, S4-076, S4-104)."""

from dataclasses import replace

import pytest

from concord.jobs.site import Credentials
from concord.jobs.upkeep import CarryingSite, SiteCleanup
from concord.rules.policy import Policy
from tests.given.fixtures import MakeNetwork
from tests.given.forgotten import (
    BY_THE_DRIVER,
    forget,
    forget_until,
    linked,
    remembered,
    stepwise,
    versions,
)
from tests.given.many_sites import Network, hub, mesh
from tests.given.site import APPLICATION, provision_site

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text)",
    "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 40) n",
)
SITES = ("london", "capetown", "oslo")
TOPOLOGIES = {"hub": hub(*SITES), "mesh": mesh(*SITES)}
NOTHING: dict[str, list[tuple[int, bool]]] = {site: [] for site in SITES}
ONLY_LONDON = "UPDATE book SET title = 'new ' || id WHERE id BETWEEN 3 AND 7"


@pytest.fixture(params=TOPOLOGIES)
def sites(network: MakeNetwork, request: pytest.FixtureRequest) -> Network:
    return network(TOPOLOGIES[request.param], *BOOK)


@pytest.fixture
def triangle(network: MakeNetwork) -> Network:
    return network(TOPOLOGIES["mesh"], *BOOK)


def totals(reports: list[SiteCleanup]) -> dict[str, tuple[int, int, int]]:
    return {each.site: (each.living, each.settled, each.forgotten) for each in reports}


def titles(sites: Network, key: int) -> set[tuple[str, ...]]:
    return {tuple(site.rows(f"SELECT title FROM book WHERE id = {key}")) for site in sites.sites}


def all_hold(sites: Network, key: int, title: str) -> bool:
    return titles(sites, key) == {((title,),)}


def test_rows_that_all_have_passed_leave_an_empty_shadow(sites: Network) -> None:
    """S4-018: 40 updated and 5 deleted rows."""
    sites["london"].run("UPDATE book SET title = title || '!'")
    linked(sites)
    sites["capetown"].run("DELETE FROM book WHERE id > 35")
    linked(sites)
    dry = forget(sites.carrying(), dry_run=True)
    assert totals(dry) == dict.fromkeys(SITES, (35, 35, 0))
    done = forget(sites.carrying())
    assert totals(done) == dict.fromkeys(SITES, (35, 35, 35))
    assert [(each.held, each.removed) for each in done] == [(5, 5)] * 3
    assert remembered(sites) == NOTHING
    assert sites.equal


def test_later_edits_of_forgotten_rows_conflict_only_with_each_other(sites: Network) -> None:
    """S4-018: without changing what a later conflict decides."""
    sites["london"].run("UPDATE book SET title = title || '!'")
    linked(sites)
    forget(sites.carrying())
    sites["oslo"].run("UPDATE book SET title = 'Oslo' WHERE id = 1", "DELETE FROM book WHERE id = 2")
    linked(sites)
    assert sites.conflicts() == []
    sites["london"].run("UPDATE book SET title = 'London' WHERE id = 3")
    sites["oslo"].run("UPDATE book SET title = 'Oslo too' WHERE id = 3")
    linked(sites)
    assert {(each["loser_row"]["title"], each["type"]) for each in sites.conflicts()} == {
        ("London", "update_update")
    }
    assert all_hold(sites, 1, "Oslo")
    assert titles(sites, 2) == {()}
    assert all_hold(sites, 3, "Oslo too")


def test_a_row_that_a_link_has_not_sent_is_kept_at_every_site(sites: Network) -> None:
    """S4-018: with one behind, nothing it needs goes."""
    sites["london"].run(ONLY_LONDON)
    sites.run("london", "capetown", spark_from=BY_THE_DRIVER)
    done = forget(sites.carrying())
    assert totals(done)["london"] == (5, 0, 0)
    assert done[1].held_back or done[0].held_back
    assert len(versions(sites["london"])) == len(versions(sites["capetown"])) == 5
    linked(sites)
    assert totals(forget(sites.carrying())) == dict.fromkeys(SITES, (5, 5, 5))


def test_a_version_younger_than_the_age_stays(sites: Network) -> None:
    """S4-076."""
    sites["london"].run(ONLY_LONDON)
    linked(sites)
    assert totals(forget(sites.carrying(), age_us=3_600_000_000)) == dict.fromkeys(SITES, (5, 0, 0))


STEPS = [(step, site) for step in ("publish", "forget") for site in SITES]


@pytest.mark.parametrize("killed", STEPS, ids=lambda step: f"{step[0]} at {step[1]}")
def test_a_cleanup_that_is_killed_anywhere_makes_no_false_conflict(
    triangle: Network, killed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then each site edits a row of its own that no other has edited since; and the next cleanup ends it."""
    triangle["london"].run("INSERT INTO book SELECT n, 'born' FROM generate_series(41, 43) n", ONLY_LONDON)
    linked(triangle)
    forget_until(triangle, *killed, monkeypatch)
    for place, site in enumerate(triangle.sites):
        site.run(
            f"UPDATE book SET title = '{site.name}' WHERE id IN ({3 + place}, {41 + place})",
        )
    linked(triangle)
    assert triangle.conflicts() == []
    for place, name in enumerate(SITES):
        assert all_hold(triangle, 3 + place, name)
        assert all_hold(triangle, 41 + place, name)
    forget(triangle.carrying())
    assert remembered(triangle) == NOTHING
    assert triangle.equal


def test_what_both_sites_add_adds_up_though_one_alone_has_forgotten_the_row(
    network: MakeNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-073: the cleanup died between two sites. Neither knows any more what the other one remembers."""
    made = network(mesh("london", "capetown"), "CREATE TABLE stock (id int PRIMARY KEY, seats int)")
    policy = Policy(resolvers=("additive(seats)", "latest_timestamp"))
    sites = replace(made, tables=tuple(each.model_copy(update={"policy": policy}) for each in made.tables))
    for each in sites.sites:
        provision_site(each, sites.tables)
    for name, statement in {
        "london": "INSERT INTO stock VALUES (1, 100)",
        "capetown": "UPDATE stock SET seats = 120",
    }.items():
        sites[name].run(statement)
        linked(sites)
    forget_until(sites, "forget", "capetown", monkeypatch)
    assert [len(versions(each, "public.stock")) for each in sites.sites] == [0, 1]
    for each in sites.sites:
        each.run("UPDATE stock SET seats = seats + 1")
    linked(sites)
    assert [each.value("SELECT seats FROM stock") for each in sites.sites] == [122, 122]


def test_an_edit_between_any_two_steps_is_neither_forgotten_nor_in_conflict(
    triangle: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each step every site edits a row of its own, and all links run."""
    triangle["london"].run(
        "UPDATE book SET title = title || '!'",
        "INSERT INTO book SELECT n, 'born' FROM generate_series(41, 80) n",
    )
    linked(triangle)
    edited: dict[int, str] = {}

    def edit(step: str, site: str) -> None:
        for name in SITES:
            for key in (1 + len(edited), 41 + len(edited)):
                triangle[name].run(f"UPDATE book SET title = '{step} {site} {name}' WHERE id = {key}")
            edited[len(edited)] = f"{step} {site} {name}"
        if site == "capetown":
            linked(triangle)

    with monkeypatch.context() as patched:
        stepwise(patched, edit)
        forget(triangle.carrying())
    assert len(edited) == len(STEPS) * len(SITES)
    linked(triangle)
    assert triangle.conflicts() == []
    for place, title in edited.items():
        assert all_hold(triangle, 1 + place, title)
        assert all_hold(triangle, 41 + place, title)
    forget(triangle.carrying())
    assert remembered(triangle) == NOTHING


def test_a_site_that_does_not_answer_keeps_every_version(sites: Network) -> None:
    sites["london"].run(ONLY_LONDON)
    linked(sites)
    nowhere = Credentials(host="127.0.0.1", port=1, database="nowhere", user="nobody")
    carrying = [
        each
        if each.access.name != "oslo"
        else CarryingSite(each.access.model_copy(update={"applier": nowhere}), each.links_out, each.tables)
        for each in sites.carrying()
    ]
    assert any("oslo does not answer" in str(each.problem) for each in forget(carrying))
    assert len(versions(sites["london"])) == 5
    assert totals(forget(sites.carrying())) == dict.fromkeys(SITES, (5, 5, 5))


def test_a_row_that_a_user_holds_is_left_for_the_next_cleanup(triangle: Network) -> None:
    """Nobody waits for anybody."""
    triangle["london"].run(ONLY_LONDON)
    linked(triangle)
    user = triangle["oslo"].log_in(APPLICATION, autocommit=False)
    user.execute("UPDATE book SET title = 'Oslo' WHERE id = 5")
    done = forget(triangle.carrying())
    user.commit()
    user.close()
    assert {each.forgotten for each in done} == {4}
    linked(triangle)
    assert triangle.conflicts() == []
    assert all_hold(triangle, 5, "Oslo")
    assert totals(forget(triangle.carrying())) == dict.fromkeys(SITES, (1, 1, 1))


def test_no_version_is_forgotten_where_no_link_has_been_told_of(triangle: Network) -> None:
    """S4-019: somebody nobody knows of may read the log."""
    triangle["london"].run(ONLY_LONDON)
    triangle["london"].run("UPDATE concord.link_state SET initialized = '{}'")
    (table,) = triangle.tables
    alone = CarryingSite(triangle["london"].access, {table.name: {}}, triangle.tables)
    for dry_run in (True, False):
        (report,) = forget([alone], dry_run=dry_run)
        assert report.problem == "kept, since no link and no snapshot has taken public.book from here"
    assert len(versions(triangle["london"])) == 5
