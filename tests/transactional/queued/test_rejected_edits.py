"""Rejected edits of a queued replication: each is reported, and a row whose key changed is one row (S3-05, S3-25)."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from tests.given.queued_authors import STEPS, History, Step, authors
from tests.given.queued_preferences import are_alike, preference, preferences, settle
from tests.given.replicated_accounts import Make

LOG = "SELECT (key ->> 0)::int, winner_row ->> 'colour', loser_row ->> 'colour' FROM concord.conflict ORDER BY 1"
PROPERTY = settings(
    max_examples=8, deadline=None, report_multiple_bugs=False, suppress_health_check=[HealthCheck.too_slow]
)


def test_an_edit_that_its_user_changed_again_before_the_compensation_came_is_reported_as_well(
    replicated: Make,
) -> None:
    """S3-05: the compensation finds a later edit, which is rejected in its turn."""
    sites = preferences(replicated, report_to_subscriber=True)
    sites.london.run("UPDATE preference SET colour = 'of London' WHERE person IN (5, 6)")
    sites.capetown.run("UPDATE preference SET colour = 'first' WHERE person IN (5, 6)")
    sites.run_both()
    sites.capetown.run(
        "UPDATE preference SET colour = 'second' WHERE person = 5", "DELETE FROM preference WHERE person = 6"
    )
    settle(sites)
    expected = [(5, "of London", "first"), (5, "of London", "second")]
    expected += [(6, "of London", "first"), (6, "of London", None)]
    for site in sites.sites:
        assert sorted(site.rows(LOG), key=str) == sorted(expected, key=str)
    assert are_alike(sites)


def test_an_edit_whose_compensation_a_new_copy_overtakes_is_reported_as_well(replicated: Make) -> None:
    """S3-05, S3-21: the copy begins after the compensation, which no run replays."""
    sites = preferences(replicated, policy="publisher_wins_and_reinitialize", report_to_subscriber=True)
    sites.london.run("UPDATE preference SET colour = 'of London' WHERE person = 5")
    sites.capetown.run("UPDATE preference SET colour = 'mine' WHERE person = 5")
    sites.run_both()
    sites.initialize_both_ways(replace=True)
    assert sites.capetown.rows(LOG) == [(5, "of London", "mine")]
    at_london, at_capetown = (site.rows("SELECT * FROM concord.conflict") for site in sites.sites)
    assert at_capetown == at_london
    settle(sites)
    assert are_alike(sites)


@pytest.mark.parametrize(
    ("london", "capetown", "fallen"),
    [
        (
            "UPDATE preference SET size = 0 WHERE person = 5",
            "UPDATE preference SET person = 20 WHERE person = 5",
            {5, 20},
        ),
        (
            "INSERT INTO preference VALUES (20, 'colour of another')",
            "UPDATE preference SET person = 20 WHERE person = 5",
            {5, 20},
        ),
        (
            "UPDATE preference SET person = 21 WHERE person = 5",
            "UPDATE preference SET person = 20 WHERE person = 5",
            {5, 20},
        ),
        (
            "UPDATE preference SET size = 0 WHERE person = 8",
            "UPDATE preference SET person = 20 WHERE person = 5; UPDATE preference SET person = 5 WHERE person = 6;"
            " UPDATE preference SET person = 6 WHERE person = 7; UPDATE preference SET person = 7 WHERE person = 8",
            {5, 6, 7, 8, 20},
        ),
        (
            "UPDATE preference SET person = 21 WHERE person = 5",
            "UPDATE preference SET size = 1 WHERE person = 5",
            {5},
        ),
    ],
    ids=["edited", "taken", "moved elsewhere", "moved in turn", "moved there"],
)
def test_by_row_both_keys_of_a_row_are_rejected_together(
    replicated: Make, london: str, capetown: str, fallen: set[int]
) -> None:
    """S2-04, S3-25: one person stays one, and none is gone. Another row of the transaction arrives."""
    sites = preferences(replicated, scope="row")
    sites.london.run(london)
    before = sites.rows("preference")[0]
    sites.capetown.run(f"BEGIN; {capetown}; UPDATE preference SET size = 99 WHERE person = 9; COMMIT")
    settle(sites)
    expected = [row if row[0] != 9 else (9, "colour 9", 99, None) for row in before]
    assert sites.rows("preference") == (expected, expected)
    assert are_alike(sites)
    assert {key for key, *_ in sites.london.rows(LOG)} == fallen


def test_by_row_keys_that_nobody_contests_change_as_users_had_it(replicated: Make) -> None:
    """In the same transaction as a contested row, and after a contested change of a key."""
    sites = preferences(replicated, scope="row")
    sites.london.run("UPDATE preference SET size = 0 WHERE person IN (5, 7)")
    sites.capetown.run(
        "BEGIN; UPDATE preference SET person = 20 WHERE person = 5; UPDATE preference SET size = 1 WHERE person = 7;"
        " UPDATE preference SET person = 26 WHERE person = 6; COMMIT",
        "UPDATE preference SET person = 28 WHERE person = 8",
    )
    settle(sites)
    assert [preference(sites, person)[0] for person in (20, 26, 28)] == [
        [],
        [("colour 6", 6)],
        [("colour 8", 8)],
    ]
    assert {key for key, *_ in sites.london.rows(LOG)} == {5, 7, 20}
    assert are_alike(sites)


def test_where_the_subscriber_wins_the_log_has_the_row_that_won(replicated: Make) -> None:
    """S3-18, S3-20: of an update, of an insert, and of a row whose key changed; a delete that wins has none."""
    sites = preferences(replicated, policy="subscriber_wins")
    sites.london.run(
        "UPDATE preference SET colour = 'of London' WHERE person BETWEEN 5 AND 7",
        "INSERT INTO preference VALUES (20, 'of London')",
    )
    sites.capetown.run(
        "UPDATE preference SET colour = 'once' WHERE person = 5",
        "BEGIN; UPDATE preference SET colour = 'of Cape Town' WHERE person = 5;"
        " INSERT INTO preference VALUES (20, 'of Cape Town');"
        " UPDATE preference SET person = 26, colour = 'moved' WHERE person = 6; COMMIT",
        "DELETE FROM preference WHERE person = 7",
    )
    settle(sites)
    assert are_alike(sites)
    assert sites.london.rows(LOG) == [
        (5, "once", "of London"),
        (6, None, "of London"),
        (7, None, "of London"),
        (20, "of Cape Town", "of London"),
    ]


@pytest.mark.parametrize("scope", ["row", pytest.param("transaction", marks=pytest.mark.long)])
def test_every_edit_arrives_or_is_in_both_logs_and_no_row_is_gone_or_stands_twice(
    replicated: Make, scope: str
) -> None:
    """S2-04, S3-05, S3-18, S3-25: histories with changes of keys, swapped ones among them."""
    sites = authors(replicated, scope=scope, report_to_subscriber=True)

    @PROPERTY
    @given(STEPS)
    def hold(steps: Sequence[Step]) -> None:
        history = History(sites)
        history.begin()
        history.play(steps)
        assert (history.doubled, history.vanished) == ([], set())
        assert (history.unknown, history.unreported) == ([], set())
        assert are_alike(sites, "id")

    hold()
