"""Users edit while an initialization reads and writes, at sites whose logs tell of it some time after."""

import pytest

from concord.jobs.site import Capture
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.logged_pair import BOOK, at_rest, retitle, title
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
