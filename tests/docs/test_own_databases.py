"""The recipe for a person's own databases, and how it is taken back, typed as it stands."""

from pathlib import Path

import pytest

from tests.docs.own_databases import pages_now


@pytest.mark.airflow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_recipe_leads_to_a_row_both_ways_and_is_taken_back_as_the_pages_show_it(tmp_path: Path) -> None:
    for page, text in pages_now(tmp_path).items():
        assert text == page.read_text(), f"{page.name}: python -m tests.docs.own_databases writes it anew"
