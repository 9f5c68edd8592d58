"""A table that nothing captured for a while: what its users wrote meanwhile is missing, and a run says so (F01)."""

import random
from contextlib import suppress

import psycopg
import pytest

from concord.databases import provisioning
from concord.messages.errors import HistoryLost, StructureChanged
from tests.given.interrupted_capture import BY_LOG, BY_TRIGGERS, PUBLICATION
from tests.given.replicated_accounts import ACCOUNTS, Make, accounts
from tests.given.replicated_sites import Replicated

WRITTEN = "INSERT INTO account (id, balance) SELECT max(id) + 1, 1 FROM account"


EACH = [("log", *each) for each in BY_LOG.values()] + [("triggers", *each) for each in BY_TRIGGERS.values()]
NAMES = [*BY_LOG, *BY_TRIGGERS]


def interrupt(sites: Replicated, begun: str, ended: str) -> None:
    """Users write meanwhile."""
    sites.london.run(begun, WRITTEN)
    if ended:
        sites.london.run(ended)
    sites.london.run(WRITTEN)


@pytest.mark.parametrize(("capture", "begun", "ended"), EACH, ids=NAMES)
def test_a_table_that_was_not_captured_for_a_while_is_refused_until_it_is_copied_again(
    replicated: Make, capture: str, begun: str, ended: str
) -> None:
    """Writes of that time were lost, and the status said 'in sync'."""
    sites = accounts(replicated, capture=capture)
    sites.run()
    interrupt(sites, begun, ended)
    deviations = provisioning.check(sites.installations())
    assert [line for line in deviations if "account" in line and "provision" in line], deviations
    with pytest.raises(StructureChanged, match=r"account.*run `provision`"):
        sites.run()
    sites.provision()
    assert provisioning.check(sites.installations()) == []
    for _ in range(2):
        with pytest.raises(
            HistoryLost, match=r"nothing captured them.*\(public\.account.*initialize__.*replace"
        ):
            sites.run()
    assert sites.capetown.value("SELECT count(*) FROM account WHERE balance = 1") == 0
    sites.initialize(replace=True)
    sites.london.run(WRITTEN)
    assert (sites.run().entries, sites.are_equal()) == (1, True)


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_provisioning_itself_interrupts_nothing(replicated: Make, capture: str) -> None:
    """It makes a publication of an older Concord one without lists of columns: users write all the while."""
    sites = accounts(replicated, capture=capture)
    sites.london.run(WRITTEN)
    sites.provision()
    sites.run()
    if capture == "log":
        sites.london.run(
            f"ALTER PUBLICATION {PUBLICATION} SET TABLE account (id, owner, balance), movement",
            "UPDATE concord.captured_by c SET identity = concat_ws('/', p.oid, p.xmin, r.oid) FROM pg_publication_rel r"
            " JOIN pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = c.relation",
            WRITTEN,
        )
    for site in sites.sites:
        site.run("ALTER TABLE account ADD COLUMN city text")
    sites.provision()
    sites.london.run(WRITTEN, "UPDATE account SET city = 'here' WHERE id = 1")
    sites.run()
    assert sites.are_equal()
    interruptions = "SELECT DISTINCT interruptions FROM concord.captured_by WHERE identity IS NOT NULL"
    assert sites.london.rows(interruptions) == [(1,)], "each was captured for the first time"


def test_a_site_of_an_older_format_goes_on_from_where_it_is(replicated: Make) -> None:
    """An upgrade asks for no new copy: the subscriber knows its tables by their oids alone."""
    sites = accounts(replicated)
    sites.london.run("DROP TABLE concord.captured_by", WRITTEN)
    sites.capetown.run(
        "UPDATE concord.replay SET tables = ARRAY(SELECT regexp_replace(t, ':\\d+ ', ' ') FROM unnest(tables) t)"
    )
    sites.provision()
    assert (sites.run().entries, sites.are_equal()) == (1, True)
    interrupt(sites, f"ALTER PUBLICATION {PUBLICATION} DROP TABLE account", "")
    sites.provision()
    with pytest.raises(HistoryLost, match=r"public\.account"):
        sites.run()


def test_a_table_that_left_its_publication_before_the_upgrade_is_not_taken_for_whole(
    replicated: Make,
) -> None:
    """The run that failed asked for `provision`, and the upgrade does too."""
    sites = accounts(replicated)
    sites.capetown.run(
        "UPDATE concord.replay SET tables = ARRAY(SELECT regexp_replace(t, ':\\d+ ', ' ') FROM unnest(tables) t)"
    )
    sites.london.run(
        "DROP TABLE concord.captured_by", f"ALTER PUBLICATION {PUBLICATION} DROP TABLE account", WRITTEN
    )
    sites.provision()
    with pytest.raises(HistoryLost, match=r"public\.account"):
        sites.run()


def test_a_set_that_loses_a_table_and_has_it_again_is_told_without_a_run_between(replicated: Make) -> None:
    """By the configuration, as by anybody else."""
    sites = accounts(replicated)
    both = sites.tables
    sites.tables = both[1:]
    sites.provision()
    sites.london.run(WRITTEN)
    sites.tables = both
    sites.provision()
    with pytest.raises(HistoryLost, match=r"nothing captured them.*\(public\.account\)"):
        sites.run()


@pytest.mark.parametrize("own", ["concord.compensation", "concord.replay", 'concord."public.account"'])
def test_a_table_of_concords_own_that_left_the_publication_is_missed_as_well(
    replicated: Make, own: str
) -> None:
    """Compensations and versions would be lost, and replayed transactions would travel back."""
    sites = replicated(ACCOUNTS, "public.account", updates="queued")
    sites.initialize_both_ways()
    sites.run_both()
    sites.london.run(f"ALTER PUBLICATION {PUBLICATION} DROP TABLE {own}")
    sites.provision()
    with pytest.raises(HistoryLost, match="nothing captured them"):
        sites.run()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_whatever_happens_to_its_capture_a_table_is_equal_or_refused(
    replicated: Make, capture: str, seed: int
) -> None:
    """Random histories of edits, interruptions, provisioning and runs: no run ends well and leaves a row out."""
    chance = random.Random(seed)
    sites = accounts(replicated, capture=capture)
    kinds = list((BY_LOG if capture == "log" else BY_TRIGGERS).values())
    refused = 0
    for _ in range(12):
        step = chance.choice(["write", "interrupt", "provision", "run", "run"])
        if step == "write":
            sites.london.run(WRITTEN)
        elif step == "interrupt":
            begun, ended = chance.choice(kinds)
            for statement in (begun, WRITTEN, ended):
                with suppress(psycopg.errors.UndefinedObject):  # it is out already
                    sites.london.run(*filter(None, [statement]))
        elif step == "provision":
            sites.provision()
        else:
            try:
                sites.run()
                assert sites.are_equal(), "a run ended well and left a row out"
            except (HistoryLost, StructureChanged):
                refused += 1
                sites.provision()
                sites.initialize(replace=True)
    sites.provision()
    try:
        sites.run()
    except HistoryLost:
        sites.initialize(replace=True)
    assert sites.are_equal()
