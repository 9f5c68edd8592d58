"""The page says of each database what it offers, as its dialect has it."""

from tests.docs.capabilities import PAGE, page_now, table


def test_the_page_lists_every_capability_of_every_database() -> None:
    assert PAGE.read_text() == page_now(), "run `python -m tests.docs.capabilities`"
    assert table() in PAGE.read_text()
