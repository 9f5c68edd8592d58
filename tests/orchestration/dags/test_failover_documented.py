"""docs/failover.md, played as it stands there: one site takes over, or each publishes its own rows (S2-17)."""

import re

import pytest

from tests.conftest import PROJECT
from tests.given.typed_page import Page

pytestmark = pytest.mark.airflow

TEXT = (PROJECT / "docs" / "failover.md").read_text()


def section(title: str) -> str:
    [text] = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    return text


def test_a_site_fails_and_its_late_edits_arrive_when_it_is_back(failing_london: Page) -> None:
    """S2-01, S2-03, S2-17, S4-182: no commit waits for the other site. A planned switch leaves nothing late."""
    failing_london.play(section("London fails") + section("A planned switch"))


def test_late_transactions_arrive_whole_when_their_site_is_back(failing_london: Page) -> None:
    """S2-01: with transactions both ways. If its disk is gone, the other site begins anew and keeps its rows."""
    failing_london.play(section("London fails, with transactions both ways"))


def test_a_reporting_copy_becomes_the_publisher(failing_london: Page) -> None:
    """S2-01."""
    failing_london.play(section("A reporting copy takes over"))


def test_each_site_publishes_its_own_rows_and_changes_of_others_fail(failing_london: Page) -> None:
    """S2-17, S2-23, S2-28."""
    failing_london.play(section("Each site publishes its own rows"))


def test_keys_of_two_sites_never_meet_and_are_sixteen_bytes_long(failing_london: Page) -> None:
    """S2-19."""
    failing_london.play(section("Keys that never meet"))


def test_two_sites_publish_their_parts_to_one_table_of_a_third(failing_london: Page) -> None:
    """S2-05, S2-27, S4-114: a filter makes the parts. A row outside travels, and is counted as filtered."""
    failing_london.play(section("One site for several publishers"))


def test_the_page_plays_all_of_its_examples() -> None:
    """Each heading with a block is the beginning of a test's text."""
    titles = re.findall(r"^## (.*)\n(?:(?!^## ).*\n)*?```", TEXT, re.MULTILINE)
    played = re.findall(
        r'section\("([^"]+)"\)',
        (PROJECT / "tests/orchestration/dags/test_failover_documented.py").read_text(),
    )
    assert sorted(titles) == sorted(played)
