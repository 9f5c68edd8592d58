"""Queued updating: the subscriber's changes wait until they are heard, and conflicts are decided by policy (S2-04)."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from concord.databases.postgresql.replication import subscriber
from concord.jobs.link import Direction
from concord.messages.errors import WriteContended
from tests.given.queued_preferences import are_alike, preference, preferences, settle
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

SHADOW = 'concord."public.preference"'
LOG = "SELECT type, winner_site, loser_site, winner_row, loser_row FROM concord.conflict ORDER BY decided_at, id"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriber, "PATIENCE", 5.0)


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return preferences(replicated)


def test_the_changes_of_each_sites_users_arrive_at_the_other_and_none_travels_back(sites: Replicated) -> None:
    """S2-04, S4-144, S4-145. S3-07: users' statements are captured; S3-16: and replayed by transaction."""
    sites.london.run(
        "UPDATE preference SET size = 100 WHERE person <= 3", "DELETE FROM preference WHERE person = 4"
    )
    sites.capetown.run(
        "UPDATE preference SET colour = 'red' WHERE person > 8",
        "INSERT INTO preference VALUES (11, 'new', 1)",
        "BEGIN; UPDATE preference SET size = 70 WHERE person = 7; UPDATE preference SET person = 12 WHERE person = 7;"
        " COMMIT",
    )
    forward, reverse = sites.run_both()
    assert [(each.entries, each.operations) for each in (forward, reverse)] == [(2, 4), (3, 6)]
    assert are_alike(sites)
    assert [each.entries for each in sites.run_both()] == [0, 0]
    assert sites.london.rows(LOG) == []


def test_callout_d_a_row_updated_at_both_sites_is_the_publishers_after_two_runs(sites: Replicated) -> None:
    """S3-24, S3-27 to S3-29: the publisher keeps the lost row (S3-04) and changes nothing.

    S3-22, S3-32: the subscriber waits for the compensation.
    """
    sites.london.run("UPDATE preference SET colour = 'of London' WHERE person = 5")
    sites.capetown.run("UPDATE preference SET colour = 'of Cape Town' WHERE person = 5")
    forward, reverse = sites.run_both()
    assert (forward.tables[0].superseded, reverse.tables[0].lost, reverse.tables[0].conflicts) == (1, 1, 1)
    assert preference(sites, 5) == ([("of London", 5)], [("of Cape Town", 5)])
    forward, _ = sites.run_both()
    assert forward.tables[0].compensated == 1
    assert preference(sites, 5)[1] == [("of London", 5)]
    assert are_alike(sites)
    [(kind, winner, loser, stands, lost)] = sites.london.rows(LOG)
    assert (kind, winner, loser) == ("update_update", "london", "capetown")
    assert (stands["colour"], lost["colour"]) == ("of London", "of Cape Town")


def test_a_row_that_nobody_had_changed_before_is_updated_at_both_sites_and_not_inserted(
    sites: Replicated,
) -> None:
    """S3-24: it was there before capture, and so has no version."""
    for site in sites.sites:
        site.run(f"DELETE FROM {SHADOW}", "UPDATE preference SET size = 7 WHERE person = 5")
    settle(sites)
    assert are_alike(sites)
    assert [row[0] for row in sites.london.rows(LOG)] == ["update_update"]


def test_callout_c_a_row_that_the_publisher_deleted_is_deleted_at_the_subscriber(sites: Replicated) -> None:
    """S3-26."""
    sites.london.run("DELETE FROM preference WHERE person = 5")
    sites.capetown.run("UPDATE preference SET colour = 'mine' WHERE person = 5")
    settle(sites)
    assert preference(sites, 5) == ([], [])
    assert are_alike(sites)
    [(kind, _, _, stands, lost)] = sites.london.rows(LOG)
    assert (kind, stands, lost["colour"]) == ("update_delete", None, "mine")


@pytest.mark.parametrize(
    ("london", "capetown", "kinds"),
    [
        ("INSERT INTO preference VALUES (20, 'one')", "INSERT INTO preference VALUES (20, 'other')", 1),
        ("UPDATE preference SET size = 0 WHERE person = 5", "DELETE FROM preference WHERE person = 5", 1),
        ("DELETE FROM preference WHERE person = 5", "DELETE FROM preference WHERE person = 5", 1),
        (
            "UPDATE preference SET size = 0 WHERE person = 5",
            "UPDATE preference SET person = 20 WHERE person = 5",
            2,
        ),
        (
            "INSERT INTO preference VALUES (20, 'one')",
            "UPDATE preference SET person = 20 WHERE person = 5",
            2,
        ),
        (
            "UPDATE preference SET person = 20 WHERE person = 5",
            "UPDATE preference SET person = 21 WHERE person = 5",
            2,
        ),
        (
            "UPDATE preference SET colour = 'a' WHERE person = 5",
            "UPDATE preference SET colour = 'a' WHERE person = 5",
            1,
        ),
    ],
)
def test_each_kind_of_conflict_ends_as_the_publisher_has_it(
    sites: Replicated, london: str, capetown: str, kinds: int
) -> None:
    """S3-25, S3-33, S4-150: a key that changes is a delete and an insert, and both fall together.

    S3-15: each operation travels with its images and versions. S3-31: rows come back as the replay writes rows.
    S3-03: each is applied with a check for conflicts, and leaves its row in the log.
    """
    sites.london.run(london)
    sites.capetown.run(capetown)
    before = sites.rows("preference")[0]
    settle(sites)
    assert sites.rows("preference") == (before, before)
    assert are_alike(sites)
    assert len(sites.london.rows(LOG)) == kinds


def test_of_a_key_that_changes_the_two_rows_are_judged_each_for_itself(sites: Replicated) -> None:
    """S3-22, S3-25: the subscriber's row stays under the old key, and the publisher's arrives under the new one.

    S3-23: both are found by their old key and old version.
    """
    sites.london.run("UPDATE preference SET person = 20 WHERE person = 5")
    sites.capetown.run("UPDATE preference SET colour = 'mine' WHERE person = 5")
    assert sites.run().tables[0].superseded == 1
    assert [preference(sites, each)[1] for each in (5, 20)] == [[("mine", 5)], [("colour 5", 5)]]
    settle(sites)
    assert [preference(sites, each)[1] for each in (5, 20)] == [[], [("colour 5", 5)]]
    assert are_alike(sites)


@pytest.mark.parametrize(("scope", "size"), [("transaction", 6), ("row", 60)])
def test_a_conflict_rejects_the_whole_transaction_or_the_row_alone(
    replicated: Make, scope: str, size: int
) -> None:
    """S2-04: the log has each row that fell."""
    sites = preferences(replicated, scope=scope)
    sites.london.run("UPDATE preference SET size = 50 WHERE person = 5")
    sites.capetown.run(
        "BEGIN; UPDATE preference SET size = 60 WHERE person = 6; UPDATE preference SET size = 51 WHERE person = 5;"
        " COMMIT"
    )
    settle(sites)
    assert [preference(sites, each)[0][0][1] for each in (5, 6)] == [50, size]
    assert are_alike(sites)
    logged = {row[4]["person"] for row in sites.london.rows(LOG)}
    assert logged == ({"5", "6"} if scope == "transaction" else {"5"})


def test_subscriber_wins_the_publishers_row_is_replaced_and_logged(replicated: Make) -> None:
    """S3-20."""
    sites = preferences(replicated, policy="subscriber_wins")
    sites.london.run(
        "UPDATE preference SET colour = 'of London' WHERE person IN (5, 6)",
        "DELETE FROM preference WHERE person = 7",
    )
    sites.capetown.run(
        "UPDATE preference SET colour = 'of Cape Town' WHERE person IN (5, 7)",
        "DELETE FROM preference WHERE person = 6",
    )
    settle(sites)
    assert [preference(sites, each)[0] for each in (5, 6, 7)] == [
        [("of Cape Town", 5)],
        [],
        [("of Cape Town", 7)],
    ]
    assert are_alike(sites)
    found = sites.london.rows(LOG)
    assert sorted(row[0] for row in found) == ["delete_update", "update_delete", "update_update"]
    assert {(row[1], row[2]) for row in found} == {("capetown", "london")}
    assert sorted(str(row[4] and row[4]["colour"]) for row in found) == ["None", "of London", "of London"]


def test_a_later_edit_of_a_rejected_row_is_rejected_and_compensated_itself(sites: Replicated) -> None:
    """S3-22: the compensation of the first finds another version, and leaves it alone."""
    sites.london.run("UPDATE preference SET size = 50 WHERE person = 5")
    sites.capetown.run("UPDATE preference SET size = 51 WHERE person = 5")
    sites.run_both()
    sites.capetown.run("UPDATE preference SET size = 52 WHERE person = 5")
    forward, reverse = sites.run_both()
    assert (forward.tables[0].superseded, reverse.tables[0].lost) == (1, 1)
    assert preference(sites, 5) == ([("colour 5", 50)], [("colour 5", 52)])
    settle(sites)
    assert preference(sites, 5)[1] == [("colour 5", 50)]
    assert are_alike(sites)
    assert [row[4]["size"] for row in sites.london.rows(LOG)] == ["51", "52"]


@pytest.mark.parametrize("told", [True, False])
def test_the_subscriber_logs_what_it_takes_back_where_that_is_asked(replicated: Make, told: bool) -> None:
    """S3-05, S3-18: under the same id as the publisher."""
    sites = preferences(replicated, report_to_subscriber=told)
    sites.london.run("UPDATE preference SET size = 50 WHERE person = 5")
    sites.capetown.run("UPDATE preference SET size = 51 WHERE person = 5")
    settle(sites)
    at_london, at_capetown = (site.rows("SELECT * FROM concord.conflict") for site in sites.sites)
    assert len(at_london) == 1
    assert at_capetown == (at_london if told else [])


def test_an_update_that_changes_nothing_is_no_change(sites: Replicated) -> None:
    """It has no version, and would else write an older row over the publisher's."""
    sites.london.run("UPDATE preference SET size = 50 WHERE person = 5")
    sites.capetown.run("UPDATE preference SET size = size")
    settle(sites)
    assert preference(sites, 5) == ([("colour 5", 50)], [("colour 5", 50)])
    assert sites.london.rows(LOG) == []


@pytest.mark.parametrize(
    ("policy", "scope"),
    [("publisher_wins", "transaction"), ("publisher_wins", "row"), ("subscriber_wins", "transaction")],
)
@pytest.mark.parametrize(
    ("london", "capetown"),
    [
        ("DELETE FROM part WHERE id = 3", "INSERT INTO stock VALUES ('c', 3), ('c', 4)"),
        ("INSERT INTO stock VALUES ('l', 3)", "DELETE FROM part WHERE id IN (3, 5)"),
    ],
)
def test_a_transaction_that_would_leave_a_child_without_its_parent_is_rejected(
    replicated: Make, london: str, capetown: str, policy: str, scope: str
) -> None:
    """S3-03: each table's rows stand in the log. Each site's own check has passed.

    The publisher keeps its references, and the subscriber takes its side back.
    """
    tables = (
        "CREATE TABLE part (id int PRIMARY KEY, name text)",
        "CREATE TABLE stock (depot text, part int REFERENCES part, PRIMARY KEY (depot, part))",
    )
    how = {"updates": "queued", "conflict": {"policy": policy, "scope": scope}}
    sites = replicated(tables, "public.part", "public.stock", **how)
    sites.london.run("INSERT INTO part SELECT n, 'part' FROM generate_series(1, 5) n")
    sites.initialize_both_ways()
    sites.london.run(london)
    sites.capetown.run(capetown)
    before = sites.rows("part")[0], sites.rows("stock")[0]
    settle(sites)
    assert (sites.rows("part"), sites.rows("stock")) == tuple((each, each) for each in before)
    kinds = [row[0] for row in sites.london.rows(LOG)]
    assert (set(kinds), len(kinds)) == ({"foreign_key"}, 2)


#: Where the replay waits before it inserts a row, as long as somebody holds the lock.
WAITS = (
    "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF current_setting('concord.applying', true) = 'on' THEN PERFORM pg_advisory_xact_lock(1); END IF;"
    " RETURN NEW; END $$",
    "CREATE TRIGGER wait BEFORE INSERT ON preference FOR EACH ROW EXECUTE FUNCTION wait()",
    "ALTER TABLE preference ENABLE ALWAYS TRIGGER wait",
)
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def test_an_insert_that_commits_between_judgement_and_write_is_not_overwritten_unseen(
    sites: Replicated,
) -> None:
    """S4-135: the write of the version meets the user's, and the entry is judged again."""
    sites.capetown.run(*WAITS)
    sites.london.run("INSERT INTO preference VALUES (20, 'of London', 1)")
    with ThreadPoolExecutor(1) as threads, sites.capetown.log_in(sites.capetown.superuser) as holder:
        holder.execute("SELECT pg_advisory_lock(1)")
        run = threads.submit(sites.run)
        while not sites.capetown.value(WAITING):
            assert not run.done()
        sites.capetown.run("INSERT INTO preference VALUES (20, 'of Cape Town', 2)")
        holder.execute("SELECT pg_advisory_unlock(1)")
        assert run.result().tables[0].superseded == 1
    assert preference(sites, 20)[1] == [("of Cape Town", 2)]
    settle(sites)
    assert are_alike(sites)


def test_what_a_user_writes_at_the_very_moment_is_not_overwritten_unseen(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An insert of the same key that commits between judgement and write: the entry is judged again."""
    monkeypatch.setattr(subscriber, "PATIENCE", 0.5)
    sites.london.run("INSERT INTO preference VALUES (20, 'of London', 1)")
    with sites.capetown.log_in(sites.capetown.superuser) as user, user.transaction():
        user.execute("INSERT INTO preference VALUES (20, 'of Cape Town', 2)")
        with pytest.raises(WriteContended):
            sites.run()
    sites.run(direction=Direction.FORWARD)
    assert preference(sites, 20)[1] == [("of Cape Town", 2)]
    settle(sites)
    assert preference(sites, 20)[1] == [("of London", 1)]
    assert are_alike(sites)
