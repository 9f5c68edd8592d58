"""The rows that a trigger of the application's wrote at one site come to the others; it does not write them again
there."""

import re

import pytest

from concord.databases import provisioning
from concord.messages.errors import ProvisioningRefused
from tests.conftest import PROJECT
from tests.given.bare_sites import installation
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import settle
from tests.given.two_sites import Pair

DOCUMENT = PROJECT / "docs" / "conflicts.md"

HISTORY = (
    "CREATE TABLE price (id int PRIMARY KEY, amount int)",
    "CREATE TABLE history (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), price int, was int)",
    "CREATE TABLE audit (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), price int)",
    "CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " INSERT INTO public.history (price, was) VALUES (OLD.id, OLD.amount); RETURN NULL; END $$",
    "CREATE FUNCTION audited() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
    " INSERT INTO public.audit (price) VALUES (NEW.id); RETURN NULL; END $$",
    "CREATE TRIGGER remember AFTER UPDATE ON price FOR EACH ROW EXECUTE FUNCTION remember()",
    "INSERT INTO price VALUES (1, 100), (2, 200)",
)


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*HISTORY)


def notices(sites: Pair) -> list[str]:
    return provisioning.notices([installation(site, sites.tables) for site in sites.sites])


def problems(sites: Pair) -> list[str]:
    try:
        provisioning.provision([installation(site, sites.tables) for site in sites.sites])
    except ProvisioningRefused as refused:
        return list(refused.facts["problems"])  # type: ignore[call-overload, no-any-return]
    return []


def test_a_history_kept_by_a_trigger_has_one_row_for_each_change_at_every_site(sites: Pair) -> None:
    """S0-16 to S0-18: the trigger is at both sites, its rows are replicated like any other."""
    sites.london.run("UPDATE price SET amount = 101 WHERE id = 1")
    sites.capetown.run("UPDATE price SET amount = 201 WHERE id = 2")
    settle(sites)
    assert sites.equal
    for site in sites.sites:
        assert site.rows("SELECT price, was FROM history ORDER BY 1") == [(1, 100), (2, 200)]
    assert sites.conflicts() == []


def test_a_trigger_that_always_fires_is_named_until_it_asks_for_the_guard(sites: Pair) -> None:
    """S0-19: the guard is a setting that every write of Concord's carries, and it works."""
    for site in sites.sites:
        site.run(
            "CREATE TRIGGER audited AFTER UPDATE ON price FOR EACH ROW EXECUTE FUNCTION audited()",
            "ALTER TABLE price ENABLE ALWAYS TRIGGER audited",
        )
    assert [line.split(",")[0] for line in notices(sites)] == [
        f"{site}: public.price has the trigger audited (AFTER" for site in ("london", "capetown")
    ]
    assert problems(sites) == []
    (documented,) = re.findall(r"```sql\n(CREATE TRIGGER audited.*?)```", DOCUMENT.read_text(), re.DOTALL)
    for site in sites.sites:
        site.run("DROP TRIGGER audited ON price", documented)
    assert notices(sites) == []
    sites.london.run("UPDATE price SET amount = 101 WHERE id = 1")
    settle(sites)
    assert [site.value("SELECT count(*) FROM audit") for site in sites.sites] == [1, 1]


def test_a_trigger_that_may_change_what_a_link_writes_is_refused(sites: Pair) -> None:
    """F49: the sites would never agree."""
    sites.london.run(
        "CREATE FUNCTION round_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " NEW.amount := NEW.amount + 1; RETURN NEW; END $$",
        "CREATE TRIGGER round_up BEFORE UPDATE ON price FOR EACH ROW EXECUTE FUNCTION round_up()",
        "ALTER TABLE price ENABLE REPLICA TRIGGER round_up",
    )
    assert problems(sites) == [
        "london: public.price has the trigger round_up (BEFORE, ENABLE REPLICA), which may change rows that Concord"
        " writes; make it an ordinary trigger (ENABLE TRIGGER), or let it do nothing while concord.applying is 'on'"
    ]


def test_children_outside_of_the_replication_set_are_named_and_keep_their_parents(pair: MakePair) -> None:
    """A delete that comes from elsewhere is undone where one of them refers to the row."""
    sites = pair("CREATE TABLE parent (id int PRIMARY KEY)", "INSERT INTO parent VALUES (1), (2)")
    sites.london.run(
        "CREATE TABLE private (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE)",
        "INSERT INTO private VALUES (7, 1)",
    )
    assert [line.split(" and ")[0] for line in notices(sites)] == [
        "london: public.private refers to public.parent (private_parent_fkey)"
    ]
    assert problems(sites) == []
    sites.capetown.run("DELETE FROM parent")
    settle(sites)
    assert sites.equal
    assert sites.capetown.rows("TABLE parent") == [(1,)]
    (entry,) = sites.conflicts()
    assert (entry["type"], entry["key"], entry["winner_row"]) == ("foreign_key", ["1"], None)
