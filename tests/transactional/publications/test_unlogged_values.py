"""Statements that change values of rows, and of which no log has anything: the table is refused until it is copied."""

import pytest

from concord.messages.errors import HistoryLost
from tests.given.replicated_accounts import Make, accounts

#: Each at both sites, and why the log does not have it.
UNLOGGED = {
    "the values of a column are computed again": (
        ["ALTER TABLE account ALTER balance TYPE numeric USING balance * 100"],
        "balance: it was altered and the table written again",
    ),
    "an added column has a value for each row": (
        ["ALTER TABLE account ADD token uuid DEFAULT gen_random_uuid()"],
        "token: its rows were written again when it was added",
    ),
    "a column is dropped and added again": (
        ["ALTER TABLE account DROP owner", "ALTER TABLE account ADD owner text"],
        "owner: it was dropped and added again",
    ),
    "two columns exchange their names": (
        [
            "ALTER TABLE movement RENAME note TO n",
            "ALTER TABLE movement ADD memo text",
            "ALTER TABLE movement RENAME memo TO note",
            "ALTER TABLE movement RENAME n TO memo",
        ],
        "note: it was dropped and added again, or another one was renamed to it",
    ),
}


@pytest.mark.parametrize("capture", ["log", "triggers"])
@pytest.mark.parametrize(("altered", "why"), UNLOGGED.values(), ids=UNLOGGED)
def test_a_change_of_values_that_no_log_has_is_refused(
    replicated: Make, altered: list[str], why: str, capture: str
) -> None:
    """The values of older rows would differ, and the status would say 'in sync'."""
    sites = accounts(replicated, capture=capture)
    sites.run()
    for site in sites.sites:
        site.run(*altered)
    sites.provision()
    for _ in range(2):
        with pytest.raises(HistoryLost, match=rf"public\.\w+: .*{why}.*initialize__\S+ with `replace`"):
            sites.run()
    sites.initialize(replace=True)
    sites.london.run("UPDATE account SET balance = 5 WHERE id = 1")
    assert (sites.run().entries, sites.are_equal()) == (1, True)


@pytest.mark.parametrize(
    ("there", "here"), [("DEFAULT 'old'", ""), ("", "DEFAULT 'old'"), ("DEFAULT 'old'", "DEFAULT 'new'")]
)
def test_a_column_that_older_rows_have_otherwise_at_the_subscriber_is_refused(
    replicated: Make, there: str, here: str
) -> None:
    sites = accounts(replicated)
    sites.london.run(f"ALTER TABLE account ADD city text {there}")
    sites.capetown.run(f"ALTER TABLE account ADD city text {here}")
    with pytest.raises(
        HistoryLost, match="column city: rows that were there when it was added got another value"
    ):
        sites.run()
    sites.initialize(replace=True)
    assert (sites.run().entries, sites.are_equal()) == (0, True)


def test_what_changes_no_value_asks_for_no_copy(replicated: Make) -> None:
    sites = accounts(replicated)
    sites.run()
    for site in sites.sites:
        site.run(
            "ALTER TABLE account ADD city text DEFAULT 'here'",
            "ALTER TABLE account RENAME owner TO holder",
            "ALTER TABLE account ALTER balance SET NOT NULL",
            "ALTER TABLE account ALTER holder SET STATISTICS 50",
        )
    sites.london.run("UPDATE account SET city = 'there' WHERE id = 1")
    assert (sites.run().entries, sites.are_equal()) == (1, True)
    for site in sites.sites:
        site.run("VACUUM FULL account")
    sites.london.run("UPDATE account SET city = 'there' WHERE id = 2")
    assert (sites.run().entries, sites.are_equal()) == (1, True)
