"""The upkeep of queued replications: values that come back, entries that are skipped, versions that are forgotten."""

import re
from datetime import timedelta

import pytest

from concord.databases.postgresql.queued import delivered
from concord.databases.registry import dialect
from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import EntryRefused, ParametersRefused
from concord.transactional.upkeep import keep_up
from tests.given.queued_preferences import VERSIONS, are_alike, preference, preferences, settle
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return preferences(replicated)


def test_compensations_go_once_they_are_delivered_and_old_tombstones_at_both_sites(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-156. A row that is written again meanwhile is no conflict, although its publisher has forgotten it."""
    sites.london.run(
        "UPDATE preference SET size = 50 WHERE person = 5", "DELETE FROM preference WHERE person IN (6, 7)"
    )
    sites.capetown.run("UPDATE preference SET size = 51 WHERE person = 5")
    settle(sites)
    assert keep_up(sites.job(), dialect)
    assert any(row[4] for row in sites.london.rows(VERSIONS)), "younger ones stay"
    monkeypatch.setattr(delivered, "TOMBSTONES_KEPT", timedelta(0))
    assert keep_up(sites.job(), dialect)
    assert sites.london.value("SELECT count(*) FROM concord.compensation") == 0
    assert not any(row[4] for row in sites.london.rows(VERSIONS))
    sites.capetown.run("INSERT INTO preference VALUES (6, 'again', 1)")
    settle(sites)
    assert preference(sites, 6) == ([("again", 1)], [("again", 1)])
    assert are_alike(sites)
    assert len(sites.london.rows("SELECT FROM concord.conflict")) == 1


def test_large_and_odd_values_are_taken_back_exactly(replicated: Make) -> None:
    """Values in TOAST that the publisher did not change, and types whose text is not plain."""
    table = (
        "CREATE TABLE odd (id int PRIMARY KEY, long text, bytes bytea, stamp timestamptz, f float8, words text[],"
        " doc json, twice int GENERATED ALWAYS AS (id * 2) STORED)"
    )
    sites = replicated((table,), "public.odd", updates="queued", conflict={"report_to_subscriber": True})
    sites.london.run(
        "INSERT INTO odd (id, long, bytes, stamp, f, words, doc) SELECT 1, string_agg(md5(n::text), ''),"
        " '\\x00ff27', '2026-03-29 01:30:00.123456+02', 'NaN', ARRAY['a,b', NULL, '\"'], '{\"a\":  1}'"
        " FROM generate_series(1, 5000) n"
    )
    sites.initialize_both_ways()
    sites.london.run("UPDATE odd SET f = 0.1 WHERE id = 1")
    sites.capetown.run("UPDATE odd SET f = 0.2, words = NULL WHERE id = 1")
    for _ in range(2):
        sites.run_both()
    london, capetown = (site.rows("SELECT o::text FROM odd o") for site in sites.sites)
    assert london == capetown
    assert len(london[0][0]) > 150_000


def test_an_entry_that_cannot_be_replayed_is_skipped_as_a_whole(sites: Replicated) -> None:
    """S2-22: later changes of its row find another version, and wait for the publisher's decision."""
    sites.capetown.run("ALTER TABLE preference ADD CHECK (size < 1000)")
    sites.london.run("UPDATE preference SET size = 1000 WHERE person = 5")
    with pytest.raises(EntryRefused) as refused:
        sites.run()
    number = int(re.findall(r"entry (\d+),", refused.value.message)[0])
    aside = SetAside(number=number, how=Aside.QUARANTINE, reason="odd", by="a person")
    with pytest.raises(ParametersRefused, match="use `entry skip`"):
        sites.run(set_aside=aside)
    skipped = sites.run(set_aside=aside.model_copy(update={"how": Aside.SKIP}))
    assert skipped.set_aside == 1
    sites.london.run("UPDATE preference SET size = 999 WHERE person = 5")
    assert sites.run().tables[0].superseded == 1
