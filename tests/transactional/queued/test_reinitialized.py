"""Publisher wins, and the subscriber is to be copied anew from the publisher (S3-21)."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pendulum
import pytest

from concord.databases.contract.replication_standing import KeptLog, ReplayedLevel
from concord.databases.postgresql.replication import standing
from concord.jobs.link import Direction
from concord.messages.errors import SitesDiffer
from concord.orchestration.tasks.replication_standing import Standing
from concord.terminal import replications
from concord.transactional.state import Facts
from tests.given.queued_preferences import are_alike, preference, preferences, settle
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

POLICY = "publisher_wins_and_reinitialize"


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return preferences(replicated, policy=POLICY)


def contest(sites: Replicated, size: int) -> None:
    sites.london.run(f"UPDATE preference SET size = {size} WHERE person = 5")
    sites.capetown.run(f"UPDATE preference SET size = {size + 1} WHERE person = 5")


def asked(sites: Replicated) -> str | None:
    """As `status` reads it, of the way back."""
    found = standing.level(sites.job(Direction.REVERSE))
    assert found
    return found.reinitialize


def test_a_conflict_asks_until_the_next_initialization_which_realigns_everything(sites: Replicated) -> None:
    """S3-21: the first conflict says why; the publisher's rows stand, also where no conflict was."""
    sites.capetown.run("UPDATE preference SET size = 0 WHERE person = 1")
    _, reverse = sites.run_both()
    assert (reverse.reinitialize, asked(sites)) == (None, None)
    contest(sites, 50)
    _, reverse = sites.run_both()
    said = re.fullmatch(r"entry (\d+) conflicted at 2[-0-9: ]+\+00", str(reverse.reinitialize))
    assert said
    assert reverse.level_from < int(said[1]) <= reverse.level_to
    first = asked(sites)
    assert first == reverse.reinitialize
    contest(sites, 60)
    settle(sites)
    assert (asked(sites), preference(sites, 5)) == (first, ([("colour 5", 60)], [("colour 5", 60)]))
    assert sites.london.rows("SELECT DISTINCT resolver, loser_site FROM concord.conflict") == [
        (POLICY, "capetown")
    ]

    sites.capetown.run(
        "SET session_replication_role = replica; UPDATE preference SET colour = 'unseen' WHERE person = 2;"
        " RESET session_replication_role"
    )
    with pytest.raises(SitesDiffer, match="with `replace`"):
        sites.initialize_both_ways()
    assert asked(sites) == first
    sites.initialize_both_ways(replace=True)
    assert (asked(sites), are_alike(sites)) == (None, True)
    assert sites.run(direction=Direction.REVERSE).reinitialize is None


def test_until_then_both_ways_go_on_and_nothing_that_users_write_is_passed_over(sites: Replicated) -> None:
    """S3-21: what the subscriber's users write before the copy is heard, or stands in the log."""
    contest(sites, 50)
    sites.run_both()
    sites.capetown.run("UPDATE preference SET size = 70 WHERE person = 7")
    settle(sites)
    assert preference(sites, 7)[0] == [("colour 7", 70)]
    assert are_alike(sites)


def test_other_policies_ask_for_nothing(replicated: Make) -> None:
    sites = preferences(replicated)
    contest(sites, 50)
    settle(sites)
    assert asked(sites) is None


def test_the_status_says_why_and_what_a_person_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """S3-21."""
    level = ReplayedLevel(7, "0/7", None, None, 1, 0, 1, None, reinitialize="entry 7 conflicted")
    log = KeptLog(0, 0, "reserved", is_read=False, now=pendulum.now("UTC"), waits=False)
    found = Standing("one", "capetown", "london", Facts(), level, log)
    monkeypatch.setattr(replications, "standings", lambda *asked, **how: [found])
    monkeypatch.setattr(replications.Known, "of", lambda engine: None)
    monkeypatch.setattr(replications.run_now, "is_paused", lambda dag: False)
    shown = replications.show_all(cast("Any", None), cast("Any", SimpleNamespace(replications=["one"])))
    assert shown == [found]
    said = " ".join(capsys.readouterr().out.split())
    assert "asks to be initialized again, entry 7 conflicted: `replicate --initialize --replace`" in said
