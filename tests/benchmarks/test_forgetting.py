"""The benchmark of forgotten versions, in small: three sites, users and links at work, and nothing left at the end."""

from pathlib import Path

import pytest

from benchmarks.databases import running_alone
from benchmarks.forgetting import begin, grid, measure, three

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_a_shadow_is_empty_again_after_every_row_was_edited_once(tmp_path: Path) -> None:
    """S4-018, S4-076: with edits and links during the cleanup, and no conflict afterwards."""
    with running_alone(tmp_path) as london:
        sites = three(london)
        begin(sites, 3_000)
        shown = measure(sites)
    assert (shown.rows, shown.before, shown.left, shown.conflicts) == (3_000, 3_000, 0, 0)
    assert shown.forgotten > 2_000
    (line,) = grid(shown).rows
    assert line[0] == "3,000"
