"""Tables that somebody alters while they are compared: left out and named, or an error in words (F87)."""

import pytest

from concord.messages.errors import StructureChanged
from tests.given.compared_replication import compare, when
from tests.given.replicated_accounts import Make, accounts
from tests.given.replicated_sites import Replicated

DROPPED = "DROP TABLE account"
ANEW = (
    "CREATE TABLE another AS TABLE account; DROP TABLE account; ALTER TABLE another RENAME TO account;"
    " ALTER TABLE account ADD PRIMARY KEY (id)"
)


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return accounts(replicated)


@pytest.mark.parametrize(
    "altered", [DROPPED, ANEW, "ALTER TABLE account RENAME owner TO holder", "TRUNCATE account"]
)
@pytest.mark.parametrize("step", ["source_cut", "target_cut", "under_way"])
def test_a_table_that_is_altered_before_it_is_read_is_left_out_and_named(
    sites: Replicated, altered: str, step: str
) -> None:
    report = compare(sites, when(step, lambda: sites.capetown.run(altered)))
    assert [each.table for each in report.tables] == ["public.movement"]
    assert "capetown: public.account was altered" in report.stopped["public.account"]


def test_a_table_that_the_publisher_drops_is_left_out_and_named(sites: Replicated) -> None:
    report = compare(sites, when("under_way", lambda: sites.london.run(DROPPED)))
    assert [each.table for each in report.tables] == ["public.movement"]
    assert "london: public.account was altered" in report.stopped["public.account"]


@pytest.mark.parametrize("altered", [DROPPED, ANEW])
def test_a_table_that_is_altered_while_it_is_read_ends_the_comparison_in_words(
    sites: Replicated, altered: str
) -> None:
    """Its cut has ended with the error, and the other tables' with it."""
    with pytest.raises(StructureChanged, match=r"capetown: public\.account was altered while it was read"):
        compare(sites, when("scan", lambda: sites.capetown.run(altered)))
