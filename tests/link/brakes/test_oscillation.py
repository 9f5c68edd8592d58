"""Two programs that each change what arrives: their ping-pong is seen, stopped, and told from what users do."""

import pytest

from concord.messages.errors import RowsOscillate
from concord.rules.brake import Approval, Brakes, Kind
from concord.tables.privacy import Treatment
from tests.given.fixtures import MakePair
from tests.given.site import provision_site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

DDL = (
    "CREATE TABLE item (id int PRIMARY KEY, token text)",
    "CREATE TABLE other (id int PRIMARY KEY, token text)",
    "INSERT INTO item SELECT n, 'common' FROM generate_series(1, 5) n",
)
UPPER = "UPDATE item SET token = upper(token) WHERE token <> upper(token) AND id = 3"
LOWER = "UPDATE item SET token = lower(token) WHERE token <> lower(token) AND id = 3"
MOST = 3


def watched(pair: MakePair) -> Pair:
    sites = pair(*DDL)
    sites.tables = tuple(each.braked(Brakes(oscillation=MOST)) for each in sites.tables)
    return sites


def round_of(sites: Pair) -> None:
    """One run of the pair; at each site a program answers what has arrived."""
    sites.run("forward")
    sites.capetown.run(LOWER)
    sites.run("reverse")
    sites.london.run(UPPER)


def test_a_row_that_comes_back_run_after_run_stops_its_table_and_names_both_versions(pair: MakePair) -> None:
    sites = watched(pair)
    sites.london.run(UPPER)
    for number in range(MOST):
        round_of(sites)
        users = sites.sites[number % 2]
        users.run(f"UPDATE item SET token = 'users {number}' WHERE id = 4")
    sites.run("forward")
    sites.capetown.run(
        LOWER, "INSERT INTO other VALUES (1, 'carried')", "UPDATE item SET token = 'waits' WHERE id IN (1, 4)"
    )
    before = sites.london.rows("TABLE item ORDER BY 1")
    report = sites.run("reverse")
    assert report.error_code == "tables_stopped"
    assert (carried(report, "public.other").applied, set(report.stopped)) == (1, {"public.item"})
    version = "SELECT origin || '/' || changed_at || '/0' FROM concord.\"public.item\" WHERE id = 3"
    arriving, present = sites.capetown.value(version), sites.london.value(version)
    assert f"(row 3: {arriving} over {present}). Nothing of the table was" in report.stopped["public.item"]
    assert [(hold.table, hold.kind, hold.count) for hold in report.holds] == [
        ("public.item", Kind.OSCILLATION, 1)
    ]
    assert sites.london.rows("TABLE item ORDER BY 1") == before

    # It stays so however often the links run, until a person has mended the cause and says so.
    for _ in range(4):
        assert not sites.run("forward").stopped
        assert set(sites.run("reverse").stopped) == {"public.item"}
    whole, sites.tables = sites.tables, tuple(each for each in sites.tables if each.name == "public.item")
    with pytest.raises(RowsOscillate, match="find it, mend it, and approve"):
        sites.run("reverse")
    sites.tables = whole
    approval = Approval(table="public.item", kind=Kind.OSCILLATION, up_to=1, since="")
    assert carried(sites.run("reverse", approvals=(approval,)), "public.item").applied == 3
    sites.settle()
    assert sites.equal
    assert not sites.conflicts()
    sites.london.run(UPPER)
    for _ in range(MOST - 1):
        round_of(sites)
    sites.settle()
    assert sites.equal


def test_users_who_answer_each_other_now_and_then_are_never_stopped(pair: MakePair) -> None:
    """Nor when they answer at once for a while: what lies further back does not count."""
    sites, pauses = watched(pair), 2 * MOST - 1
    for number in range(pauses + MOST - 1):
        for site, direction in ((sites.london, "forward"), (sites.capetown, "reverse")):
            site.run(f"UPDATE item SET token = '{direction} {number}' WHERE id = 3")
            sites.run(direction)
        for _ in range(3 if number < pauses else 0):
            sites.run("reverse")
            sites.run("forward")
    sites.run("reverse")
    assert sites.equal


def test_users_who_edit_one_row_at_both_sites_before_every_run_are_never_stopped(pair: MakePair) -> None:
    sites = watched(pair)
    for number in range(2 * MOST):
        for site in sites.sites:
            site.run(f"UPDATE item SET token = '{number}' || current_database() WHERE id = 3")
        sites.run("forward")
        sites.run("reverse")
    assert sites.equal


def test_users_are_told_from_programs_where_the_key_is_private_and_no_message_has_it(pair: MakePair) -> None:
    # there the ledger's ids and keys are keyed hashes
    sites = pair(
        "CREATE TABLE item (id text PRIMARY KEY, token text)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO item VALUES ('anna@example.org', 'common')",
    )
    private = {"public.item": {"id": Treatment.HASHED}, "public.other": {}}
    sites.tables = tuple(
        each.braked(Brakes(oscillation=2)).model_copy(update={"private": private[each.name]})
        for each in sites.tables
    )
    for site in sites.sites:
        provision_site(site, sites.tables)
    for number in range(4):  # the third would stop the table, and lets the count begin anew
        for site in sites.sites:
            site.run(f"UPDATE item SET token = '{number}' || current_database()")
        sites.run("forward")
        assert not sites.run("reverse").stopped
    sites.london.run("UPDATE item SET token = upper(token)")
    sites.run("forward")
    sites.capetown.run("UPDATE item SET token = lower(token)")
    (why,) = sites.run("reverse").stopped.values()
    assert "to the last write (a row: capetown#1/" in why
    assert "anna" not in why
