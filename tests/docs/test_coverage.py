"""The page of coverage: each item of the checklist is shown by a test, or decided in words."""

import pytest

from tests.docs.coverage import OPEN, PAGE, SUBJECTS, page_now, shown, told


def test_the_page_is_as_tests_and_pages_have_it() -> None:
    assert PAGE.read_text() == page_now(), "run `python -m tests.docs.coverage`"


@pytest.mark.parametrize("item", [item for each in SUBJECTS for item in each.central])
def test_a_central_item_is_shown_by_a_test_that_names_it(item: str) -> None:
    assert bool(shown().get(item)) is (item not in OPEN)


@pytest.mark.parametrize("item", [item for each in SUBJECTS for item in each.others])
def test_any_other_item_is_shown_or_decided_in_words(item: str) -> None:
    assert bool(shown().get(item) or told().get(item)) is (item not in OPEN)
