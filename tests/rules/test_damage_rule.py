"""A backfill writes rows again where both sites hold one version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.rules.damage_rule import damaged
from concord.versions.row_version import RowVersion
from tests.versions.any_version import versions

OWN = RowVersion("london#1", 5, 0, {"london#1": (5, 0)})
MERGED = RowVersion("london#1", 5, 1, {"london#1": (5, 1)})


@pytest.mark.parametrize(
    ("version", "row_exists", "alike", "expected"),
    [
        (OWN, True, True, False),
        (OWN, True, False, True),
        (OWN, False, False, True),
        (MERGED, True, False, False),
    ],
)
def test_a_missing_row_and_one_that_differs_from_its_origins_are_damaged(
    version: RowVersion, row_exists: bool, alike: bool, expected: bool
) -> None:
    assert damaged(version, "london#1", row_exists=row_exists, alike=alike) is expected


@given(versions(), st.sampled_from(("london#1", "oslo#1")), st.booleans())
def test_a_site_puts_back_other_sites_rows_only_where_they_are_missing(
    version: RowVersion, source: str, row_exists: bool
) -> None:
    if damaged(version, source, row_exists=row_exists, alike=False) and row_exists:
        assert version.origin == source
    assert not damaged(version, source, row_exists=True, alike=True)
