"""One way over the log: every committed transaction, in commit order, its boundaries kept (S0-01, S0-08 to S0-14)."""

import pytest

from concord.databases.postgresql.entries import from_log
from concord.messages.errors import EntryRefused, HistoryLost, NotInitialized, SitesDiffer
from tests.given.replicated_accounts import ACCOUNTS, Make, accounts
from tests.given.replicated_sites import Replicated


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    """Ten accounts at both sites, and a table of their movements."""
    return accounts(replicated)


def test_a_copy_and_all_that_is_committed_after_it_arrive(sites: Replicated) -> None:
    """S0-07, S0-24: each statement commits by itself here, and its rows are operations, one for each row."""
    assert sites.are_equal()
    sites.london.run(
        "UPDATE account SET balance = balance - 5 WHERE id <= 3",
        "INSERT INTO movement (account, amount, note) SELECT id, -5, E'a\\tb\\\\' FROM account WHERE id <= 3",
        "DELETE FROM account WHERE id = 10",
        "UPDATE account SET id = 11 WHERE id = 9",
    )
    report = sites.run()
    assert sites.are_equal()
    assert (report.entries, report.operations, report.conversions) == (4, 8, 0)
    again = sites.run()
    assert (again.entries, again.operations) == (0, 0)


def test_a_transaction_that_was_rolled_back_never_leaves_the_publisher(sites: Replicated) -> None:
    """S0-08; a savepoint that was rolled back neither."""
    with sites.london.log_in(sites.london.superuser, autocommit=False) as user:
        user.execute("UPDATE account SET balance = 0")
        user.rollback()
        user.execute("UPDATE account SET balance = 1 WHERE id = 1")
        user.execute("SAVEPOINT s; UPDATE account SET balance = 2; ROLLBACK TO SAVEPOINT s")
    report = sites.run()
    assert (report.entries, report.operations) == (1, 1)
    assert sites.are_equal()


def test_transactions_arrive_in_the_order_of_their_commits_and_not_of_their_begins(sites: Replicated) -> None:
    """S0-11, S0-12, S0-26: the one that began later commits first, and is replayed first."""
    sites.capetown.run(*WITNESS)
    london = sites.london
    with london.log_in(london.superuser, autocommit=False) as early:
        early.execute("UPDATE account SET balance = 1 WHERE id = 1")
        london.run("UPDATE account SET balance = 2 WHERE id = 2")
    sites.run()
    assert [key for (key,) in sites.capetown.rows("SELECT id FROM seen ORDER BY n")] == [2, 1]


def test_each_transaction_is_one_transaction_at_the_subscriber(sites: Replicated) -> None:
    """S0-02, S0-04, S0-21, S0-37, T12: three entries, three transactions, each with its own rows alone."""
    sites.london.run(
        "UPDATE account SET balance = 1 WHERE id <= 4",
        "UPDATE account SET balance = 2 WHERE id IN (5, 6)",
        "UPDATE account SET balance = 3 WHERE id = 7",
    )
    sites.run()
    found = sites.capetown.rows("SELECT count(*) FROM account WHERE id <= 7 GROUP BY xmin::text ORDER BY 1")
    assert found == [(1,), (2,), (4,)]


def test_the_subscribers_triggers_stay_silent_and_it_keeps_its_other_columns(replicated: Make) -> None:
    """S0-17, S0-18: this trigger is the subscriber's alone. A column that the publisher lacks keeps its value."""
    made = replicated(ACCOUNTS, "public.account")
    made.capetown.run(
        "ALTER TABLE account ADD COLUMN local text DEFAULT 'mine'",
        "CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'a trigger fired'; END$$",
        "CREATE TRIGGER loud BEFORE INSERT OR UPDATE OR DELETE ON account FOR EACH ROW EXECUTE FUNCTION loud()",
    )
    made.initialize()
    made.london.run("INSERT INTO account VALUES (1, 'one', 1)", "UPDATE account SET balance = 2")
    made.run()
    assert made.capetown.rows("SELECT * FROM account") == [(1, "one", 2, "mine")]


def test_rows_that_were_altered_by_hand_are_realigned_and_counted(sites: Replicated) -> None:
    """S0-48, T10: an insert that finds its row, an update and a delete that do not; each is counted."""
    sites.capetown.run("DELETE FROM account WHERE id IN (1, 2)", "INSERT INTO account VALUES (20, 'mine', 0)")
    sites.london.run(
        "UPDATE account SET balance = 7 WHERE id = 1",
        "DELETE FROM account WHERE id = 2",
        "INSERT INTO account VALUES (20, 'theirs', 5)",
    )
    report = sites.run()
    [account, _] = report.tables
    assert (account.inserted_for_update, account.missing, account.updated_for_insert) == (1, 1, 1)
    assert (report.conversions, account.acquired, account.applied, account.converged) == (3, 3, 2, 1)
    assert account.adds_up
    assert sites.are_equal()
    assert sites.capetown.value("SELECT conversions FROM concord.replay") == 3


def test_where_conversions_are_refused_the_replication_stops_at_the_entry(replicated: Make) -> None:
    """S0-48, S4-136: all before it stand, nothing of it, and a mended row lets it pass."""
    sites = accounts(replicated, conversions="refuse")
    sites.capetown.run("DELETE FROM account WHERE id = 2")
    sites.london.run(
        "UPDATE account SET balance = 1 WHERE id = 1",
        "UPDATE account SET balance = 2 WHERE id IN (2, 3)",
        "UPDATE account SET balance = 3 WHERE id = 4",
    )
    with pytest.raises(EntryRefused, match=r"public\.account: an update that does not find its row"):
        sites.run()
    assert sites.capetown.rows("SELECT id, balance FROM account WHERE balance < 100") == [(1, 1)]
    sites.capetown.run("INSERT INTO account VALUES (2, 'owner 2', 100)")
    assert sites.run().entries == 2
    assert sites.are_equal()


def test_an_entry_that_a_constraint_refuses_is_named_and_tried_again(sites: Replicated) -> None:
    sites.capetown.run("ALTER TABLE account ADD CONSTRAINT rich CHECK (balance > 10)")
    sites.london.run("UPDATE account SET balance = 5 WHERE id = 1")
    with pytest.raises(EntryRefused, match=r'capetown: entry [0-9]+, committed at .*"rich"'):
        sites.run()
    sites.capetown.run("ALTER TABLE account DROP CONSTRAINT rich")
    sites.run()
    assert sites.are_equal()


def test_an_entry_larger_than_a_batch_is_one_transaction_all_the_same(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_log, "OPERATIONS", 7)
    sites.london.run(
        "INSERT INTO account SELECT n, 'many', n FROM generate_series(100, 150) n",
        "UPDATE account SET balance = 0 WHERE id > 140",
        "DELETE FROM account WHERE id = 145",
    )
    report = sites.run()
    assert (report.entries, report.operations, report.largest) == (3, 51 + 10 + 1, 51)
    assert sites.are_equal()
    found = sites.capetown.rows(
        "SELECT count(*) FROM account WHERE id BETWEEN 100 AND 140 GROUP BY xmin::text"
    )
    assert found == [(41,)]


def test_an_entry_whose_last_operation_fills_a_batch_arrives(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-39, T09: no transaction follows it that would make the replay commit."""
    monkeypatch.setattr(from_log, "OPERATIONS", 5)
    sites.london.run("UPDATE account SET balance = 1")
    assert (sites.run().entries, sites.are_equal()) == (1, True)


def test_a_truncated_table_is_emptied_in_its_place_among_the_transactions(sites: Replicated) -> None:
    sites.london.run(
        "INSERT INTO movement (account, amount) VALUES (1, 1)",
        "TRUNCATE account, movement",
        "INSERT INTO account VALUES (1, 'again', 1)",
    )
    sites.run()
    assert sites.are_equal()
    assert sites.capetown.rows("SELECT owner FROM account") == [("again",)]


def test_a_value_that_was_not_changed_and_not_sent_stays(replicated: Make) -> None:
    """A long value lies apart from its row (TOAST), and the log leaves it out where it is unchanged."""
    made = replicated(
        (
            "CREATE TABLE letter (id int PRIMARY KEY, said text, n int)",
            "ALTER TABLE letter ALTER said SET STORAGE EXTERNAL",
        ),
        "public.letter",
    )
    made.initialize()
    made.london.run("INSERT INTO letter VALUES (1, repeat('long ', 20000), 1)", "UPDATE letter SET n = 2")
    made.run()
    assert made.are_equal()
    made.london.run("UPDATE letter SET id = 2, n = 3")
    made.run()
    assert made.are_equal()


def test_a_replication_that_was_never_initialized_says_so(replicated: Make) -> None:
    made = replicated(ACCOUNTS, "public.account")
    with pytest.raises(NotInitialized, match="initialize__"):
        made.run()


def test_rows_of_the_subscriber_are_not_replaced_unasked(replicated: Make) -> None:
    made = replicated(ACCOUNTS, "public.account")
    made.capetown.run("INSERT INTO account VALUES (1, 'mine', 1)")
    with pytest.raises(SitesDiffer, match="has rows already"):
        made.initialize()
    assert made.capetown.rows("SELECT * FROM account") == [(1, "mine", 1)]


def test_a_subscriber_that_was_restored_is_refused_before_anything_is_written(sites: Replicated) -> None:
    """PostgreSQL would begin after the entry that the subscriber lost, without a word."""
    before = sites.capetown.value("SELECT level FROM concord.replay")
    sites.london.run("UPDATE account SET balance = 1")
    sites.run()
    sites.capetown.run(f"UPDATE concord.replay SET level = {before}", "UPDATE account SET balance = 100")
    with pytest.raises(
        HistoryLost, match="confirmed beyond the level of capetown, as after a restore of capetown"
    ):
        sites.run()
    sites.initialize(replace=True)
    assert sites.are_equal()


def test_values_of_a_type_that_has_no_common_binary_form_travel_as_text(replicated: Make) -> None:
    made = replicated(
        (
            "CREATE TYPE mood AS ENUM ('low', 'high')",
            "CREATE TABLE day (id int PRIMARY KEY, mood mood, at interval, w text)",
        ),
        "public.day",
    )
    made.initialize()
    made.london.run(
        "INSERT INTO day VALUES (1, 'low', '1 day 02:03', E'a\\tb\\nc\\\\d\\re')",
        "INSERT INTO day VALUES (2, NULL, NULL, '\\N'), (3, 'high', NULL, '')",
        "UPDATE day SET mood = 'high' WHERE id = 1",
    )
    made.run()
    assert made.are_equal()


#: Notes the order in which rows of `account` are written, although other triggers stay silent.
WITNESS = (
    "CREATE TABLE seen (n bigint GENERATED ALWAYS AS IDENTITY, id int)",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
    " $$BEGIN INSERT INTO public.seen (id) VALUES (NEW.id); RETURN NULL; END$$",
    "CREATE TRIGGER note AFTER UPDATE ON account FOR EACH ROW EXECUTE FUNCTION note()",
    "ALTER TABLE account ENABLE ALWAYS TRIGGER note",
)
