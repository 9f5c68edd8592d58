"""Users edit while an initialization reads and writes, at sites whose logs tell of it some time after."""

import pytest

from concord.databases.postgresql.rows import logged_edits, repetition
from concord.jobs.initialization import How, InitializationJob
from concord.jobs.site import Capture
from spark_jobs.initialize import initialize
from tests.given.at_step import At
from tests.given.fixtures import MakeNetwork, MakePair
from tests.given.forgotten import agree_at_london_alone, linked
from tests.given.logged_pair import BOOK, at_rest, retitle, title
from tests.given.many_sites import chain
from tests.given.strangers import initialized

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("capture", [Capture.LOG], indirect=True, ids=str)]


@pytest.mark.parametrize("site", ["london", "capetown"])
def test_an_edit_that_is_made_before_its_rows_are_read_is_in_no_conflict(pair: MakePair, site: str) -> None:
    """Unregistered, it would stand under the version that the other site holds with the row before it."""
    sites = pair(*BOOK)
    for each in sites.sites:
        retitle(each, 1 if each.name == "london" else 2, "known at both")
    assert at_rest(sites)
    retitle(sites.london, 3, "so that the ranges differ")

    def edit() -> None:
        retitle(getattr(sites, site), 1, "meanwhile")
        getattr(sites, site).as_application("DELETE FROM book WHERE id = 2")

    initialized(sites, "reinitialize", named="london", progress=At("positions", edit))
    assert at_rest(sites)
    assert [(title(each, 1), title(each, 2)) for each in sites.sites] == [("meanwhile", None)] * 2
    assert sites.conflicts() == []


def test_a_delete_that_all_know_waits_for_no_registration_of_its_key(
    network: MakeNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registration, by another session, would wait for the chunk, and the chunk for it."""
    item = "CREATE TABLE item (id int PRIMARY KEY, token text)"
    sites = network(chain("london", "capetown"), item)
    agree_at_london_alone(sites, monkeypatch)
    sites.add("oslo", "london", [item, "INSERT INTO item VALUES (1, 'other')"])

    def brief() -> None:
        sites["oslo"].run("INSERT INTO item VALUES (3, 'brief')")
        sites["oslo"].run("DELETE FROM item WHERE id = 3")

    hasty = tuple(each.replace(logged_edits.PATIENCE, "1s") for each in logged_edits.FIRST)
    monkeypatch.setattr(logged_edits, "FIRST", hasty)
    monkeypatch.setattr(repetition, "PATIENCE", 0.0)
    job = InitializationJob(link=sites.job("london", "oslo"), how=How.MERGE, named="london")
    initialize(job, sites.spark, At("chunk", brief))
    linked(sites)
    assert sites.equal
