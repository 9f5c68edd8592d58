"""A hook of a link's table: every row before it is written, in the target's one transaction (S2-24, S2-25, S3-13)."""

from typing import Any

import psycopg
import pytest

from concord.jobs.link import Direction
from concord.jobs.site import Capture
from concord.messages.errors import HookFailed
from concord.rules.policy import Policy
from concord.tables.privacy import Treatment
from spark_jobs.link import transmit
from tests.given import hook_functions
from tests.given.at_step import At
from tests.given.fixtures import MakePair, over_captures
from tests.given.forgotten import forget, stepwise
from tests.given.hooked_pair import BOOKS, COLUMNS, audit, hook, hooked
from tests.given.site import provision_site
from tests.given.tombstones import carrying
from tests.given.two_sites import Pair, carried

Rows = list[tuple[Any, ...]]


class Killed(BaseException):
    """The driver is gone."""


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    hook_functions.shown.clear()
    hook_functions.meanwhile.clear()
    return pair(*BOOKS, "CREATE TABLE plain (id int PRIMARY KEY)")


def prices(sites: Pair) -> Rows:
    """The same at both sites."""
    assert sites.equal
    return [(key, int(price)) for key, price in sites.london.rows("SELECT id, price FROM book ORDER BY id")]


@over_captures
def test_a_hook_writes_an_audit_row_with_the_old_and_the_new_price_of_each_row(sites: Pair) -> None:
    """S2-24, S2-25, S3-08, S3-13: of inserts, updates and deletes, in no conflict, each once."""
    sites = hooked(sites, capetown=hook("audits", *COLUMNS))
    sites.london.run(
        "UPDATE book SET price = price + id WHERE id < 3",
        "DELETE FROM book WHERE id = 3",
        "INSERT INTO book VALUES (9, 'new', 90)",
    )
    report = carried(sites.run())
    assert (report.acquired, report.applied) == (4, 4)
    assert audit(sites.capetown) == [
        (1, "update", 10, 11),
        (2, "update", 10, 12),
        (3, "delete", 10, None),
        (9, "insert", None, 90),
    ]
    sites.settle()
    assert prices(sites) == [(1, 11), (2, 12), (4, 10), (5, 10), (9, 90)]
    assert len(audit(sites.capetown)) == 4
    assert audit(sites.london) == []


def test_what_wins_a_conflict_is_shown_with_the_row_that_it_replaces_and_what_loses_is_not(
    sites: Pair,
) -> None:
    """S2-25: also where a merge is what will be written."""
    policy = Policy(resolvers=("average(price)",))
    sites = hooked(sites, policy, capetown=hook("audits", *COLUMNS))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1", "DELETE FROM book WHERE id = 2")
    sites.capetown.run(
        "UPDATE book SET price = 40 WHERE id = 1", "UPDATE book SET title = 'two' WHERE id = 2"
    )
    sites.settle()
    assert prices(sites)[:2] == [(1, 30), (2, 10)]
    assert audit(sites.capetown) == [(1, "update", 40, 30)], "the later edit stays"


@over_captures
def test_a_changed_row_reaches_every_site_and_no_hook_answers_another(sites: Pair) -> None:
    """S2-24, S3-13: as a version of the site whose hook made it; each edit is changed once."""
    sites = hooked(sites, london=hook("adds_one"), capetown=hook("adds_one"))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1")
    sites.capetown.run("UPDATE book SET price = 30 WHERE id = 2", "INSERT INTO book VALUES (9, 'new', 90)")
    sites.settle()
    assert prices(sites) == [(1, 21), (2, 31), (3, 10), (4, 10), (5, 10), (9, 91)]
    assert [report.total("acquired") for report in sites.settle()] == [0, 0, 0, 0]
    assert sites.conflicts() == []
    sites.london.run("UPDATE book SET price = 50 WHERE id = 2")
    sites.settle()
    assert prices(sites)[1] == (2, 51)


def test_edits_of_both_sites_that_a_hook_changes_are_decided_and_end_equal(sites: Pair) -> None:
    policy = Policy(resolvers=("additive(price)",))
    sites = hooked(sites, policy, london=hook("adds_one"), capetown=hook("adds_one"))
    for _ in range(2):
        sites.london.run("UPDATE book SET price = price + 3 WHERE id = 1")
        sites.capetown.run("UPDATE book SET price = price + 5 WHERE id = 1")
        sites.settle()
    assert prices(sites)[0] == (1, 28), "both sums, and one more each time"


def test_what_a_hook_has_changed_meets_its_next_edit_with_the_row_that_came_in(sites: Pair) -> None:
    """S2-24: also where the site of the edit no longer keeps that row, since a run that died has read a later one."""

    def die() -> None:
        raise Killed

    policy = Policy(resolvers=("additive(price)",))
    sites = hooked(sites, policy, capetown=hook("adds_one"))
    sites.london.run("UPDATE book SET price = 13 WHERE id = 1")
    sites.run()
    sites.london.run("UPDATE book SET price = 16 WHERE id = 1")
    with pytest.raises(Killed):
        sites.run(at=At("write", die))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1")
    sites.capetown.run("UPDATE book SET price = price + 50 WHERE id = 1")
    sites.settle()
    assert prices(sites)[0] == (1, 72), (
        "13 + 1 by the hook + 7 of London's + 50 of Cape Town's + 1 by the hook"
    )


@over_captures
def test_a_refused_row_waits_with_the_reason_of_the_hook_and_all_others_arrive(sites: Pair) -> None:
    """S3-13: the counts add up (rule 11); each run asks again."""
    sites = hooked(sites, capetown=hook("refuses_dear"))
    sites.london.run("UPDATE book SET price = price + 1", "UPDATE book SET price = 300 WHERE id = 3")
    report = carried(sites.run())
    assert (report.acquired, report.applied, report.quarantined) == (5, 4, 1)
    [(kind, reason)] = sites.capetown.rows("SELECT kind, reason FROM concord.waiting")
    assert (kind, reason) == (
        "quarantined",
        "the hook tests.given.hook_functions:refuses_dear refuses it: too dear",
    )
    assert sites.capetown.value("SELECT price FROM book WHERE id = 3") == 10
    assert carried(sites.run()).retried == 1
    sites.london.run("UPDATE book SET price = 99 WHERE id = 3")
    sites.settle()
    assert prices(sites)[2] == (3, 99)
    assert sites.capetown.value("SELECT count(*) FROM concord.waiting") == 0


def test_of_a_row_that_the_site_refuses_nothing_is_added(sites: Pair) -> None:
    """S3-13: what a hook adds belongs to the row, and comes with it."""
    sites = hooked(sites, capetown=hook("audits", *COLUMNS))
    sites.capetown.run("ALTER TABLE book ADD CONSTRAINT cheap CHECK (price < 100)")
    sites.london.run(
        "UPDATE book SET price = price + 1 WHERE id < 3", "UPDATE book SET price = 300 WHERE id = 2"
    )
    assert carried(sites.run()).quarantined == 1
    assert audit(sites.capetown) == [(1, "update", 10, 11)]
    sites.capetown.run("ALTER TABLE book DROP CONSTRAINT cheap")
    sites.settle()
    assert audit(sites.capetown) == [(1, "update", 10, 11), (2, "update", 10, 300)]
    assert sites.equal


@over_captures
def test_nobody_edits_a_row_while_its_hook_is_asked(sites: Pair) -> None:
    """S2-25: what it is shown is what the row replaces."""
    sites = hooked(sites, capetown=hook("notes"))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1")

    def edits() -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            sites.capetown.run("SELECT FROM book WHERE id = 1 FOR UPDATE NOWAIT")

    hook_functions.meanwhile.append(edits)
    sites.run()
    [[row]] = hook_functions.shown
    assert (row["present"]["price"], row["incoming"]["price"]) == ("10", "20")


def test_the_previous_row_is_told_where_it_is_kept(sites: Pair) -> None:
    """S2-25: the row that both come from, for a hook as for a merge."""
    sites = hooked(sites, Policy(resolvers=("merge_columns",)), capetown=hook("notes"))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1", "UPDATE book SET price = 21 WHERE id = 1")
    sites.capetown.run("UPDATE book SET title = 'here' WHERE id = 1")
    sites.run()
    [[row]] = hook_functions.shown
    assert row["incoming"] == {"id": 1, "title": "here", "price": "21"}
    assert row["present"] == {"id": 1, "title": "here", "price": "10"}
    assert row["previous"] == {"id": 1, "title": "old", "price": "10"}
    assert (row["origin"], row["changeable"]) == ("capetown#1", True)
    sites.settle()
    sites.london.run("UPDATE book SET price = 30 WHERE id = 1")
    sites.run()
    assert hook_functions.shown[-1][0]["previous"] == {"id": 1, "title": "here", "price": "21"}


def test_the_previous_row_is_the_one_that_the_source_has_forgotten(
    sites: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 10: a cleanup died after London. Cape Town remembers the version, and what that one was made of."""
    sites = hooked(sites, Policy(resolvers=("merge_columns",)), capetown=hook("notes"))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1")
    sites.settle()
    sites.capetown.run("UPDATE book SET price = 30 WHERE id = 1")
    sites.settle()

    def die(step: str, site: str) -> None:
        if (step, site) == ("forget", "capetown"):
            raise Killed

    stepwise(monkeypatch, die)
    with pytest.raises(Killed):
        forget(carrying(sites))
    sites.london.run("UPDATE book SET price = 40 WHERE id = 1")
    sites.run()
    assert hook_functions.shown[-1][0]["previous"] == {"id": 1, "title": "old", "price": "30"}


def test_a_table_without_a_hook_here_is_shown_to_nobody(sites: Pair) -> None:
    sites = hooked(sites, capetown=hook("notes"))
    sites.london.run("INSERT INTO plain VALUES (1)")
    sites.capetown.run("UPDATE book SET price = 1 WHERE id = 1")
    steps: list[str] = []
    for direction in Direction:
        transmit(sites.job(direction), sites.spark, steps.append)
    assert "commit" in steps
    assert "hook" not in steps
    assert hook_functions.shown == []


FAILING = {
    "breaks": "failed: ArithmeticError: no idea of {'id': 1,",
    "leaves": "failed: SystemExit: no more",
    "answers_otherwise": "must return None, or a pyarrow.RecordBatch with a column decision",
    "is_short": "returned 0 decisions on 1 row",
    "talks": "may say apply, change or refuse",
    "changes_nothing_to": "must return, beside change, a whole row: id, price, title",
    "moves_keys": "returned a row of another key",
    "changes_types": "returned a row of other types",
    "adds_elsewhere": "returned the columns public.other; name under its `adds`",
    "adds_columns": "gives public.audit the columns secret",
    "adds_what_is_refused": "adds a row that public.audit refuses: invalid input syntax for type integer",
}


@pytest.mark.parametrize("name", FAILING)
def test_a_hook_that_fails_or_says_what_nobody_can_do_ends_the_run_and_nothing_is_written(
    sites: Pair, name: str
) -> None:
    """S3-13: one error, which names the hook and the table."""
    sites = hooked(sites, capetown=hook(name, *COLUMNS))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1", "INSERT INTO plain VALUES (1)")
    with pytest.raises(HookFailed) as failed:
        sites.run()
    told = f"capetown: public.book: the hook tests.given.hook_functions:{name} "
    assert failed.value.message.startswith(told + FAILING[name])
    assert sites.capetown.value("SELECT count(*) FROM plain") == 0
    assert audit(sites.capetown) == []


@pytest.mark.parametrize("name", ["breaks", "refuses_dear"])
def test_no_private_value_stands_in_what_a_hook_makes_people_read(sites: Pair, name: str) -> None:
    sites = hooked(sites, capetown=hook(name))
    private = {"private": {"title": Treatment.DROPPED}}
    sites.tables = tuple(each.model_copy(update=private) if each.hooks else each for each in sites.tables)
    for site in sites.sites:
        provision_site(site, sites.tables)
    sites.london.run("UPDATE book SET title = 'unseen', price = 300 WHERE id = 1")
    if name == "breaks":
        with pytest.raises(HookFailed) as failed:
            sites.run()
        assert "unseen" not in failed.value.message
        assert "what it says may be private" in failed.value.message
    else:
        sites.run()
        [(reason,)] = sites.capetown.rows("SELECT reason FROM concord.waiting")
        assert reason == "the hook tests.given.hook_functions:refuses_dear refuses it"


@pytest.mark.parametrize(
    ("name", "said"), [("nobody_wrote_it", "cannot be imported: "), ("not_a_function", "is no function")]
)
def test_a_hook_that_is_not_there_stops_its_table_before_any_row_is_on_its_way(
    sites: Pair, name: str, said: str
) -> None:
    sites = hooked(sites, capetown=hook(name))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1", "INSERT INTO plain VALUES (1)")
    (stopped,) = sites.run().stopped.values()
    assert stopped.startswith(f"capetown: public.book: the hook tests.given.hook_functions:{name} {said}")
    assert sites.capetown.value("SELECT count(*) FROM plain") == 1


def test_a_table_whose_foreign_keys_nobody_would_look_at_takes_no_rows(sites: Pair) -> None:
    sites = hooked(sites, capetown=hook("audits", *COLUMNS))
    sites.capetown.run(
        "CREATE TABLE shelf (id int PRIMARY KEY)",
        "ALTER TABLE audit ADD CONSTRAINT of_shelf FOREIGN KEY (book) REFERENCES shelf",
    )
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1")
    said = "its hook adds rows to public.audit, whose foreign key of_shelf would not be checked"
    with pytest.raises(HookFailed, match=said):
        sites.run()
    with pytest.raises(AssertionError, match=said):
        provision_site(sites.capetown, sites.tables)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP TABLE audit", "which is not there"),
        ("ALTER TABLE audit DROP old, DROP new", "has no column new, old"),
    ],
)
def test_a_table_that_cannot_take_the_rows_is_named_before_the_site_is_provisioned(
    sites: Pair, change: str, said: str
) -> None:
    sites = hooked(sites, capetown=hook("audits", *COLUMNS))
    sites.capetown.run(change)
    with pytest.raises(
        AssertionError, match=f"capetown: public.book: its hook adds rows to public.audit, .*{said}"
    ):
        provision_site(sites.capetown, sites.tables)


@pytest.mark.parametrize("capture", [Capture.LOG], indirect=True, ids=str)
def test_no_hook_is_shown_a_row_that_came_after_its_key_was_locked(sites: Pair) -> None:
    """A delete arrives where both have deleted the row. It takes none of the rows that come meanwhile."""
    sites = hooked(sites, capetown=hook("audits", *COLUMNS))
    sites.london.run("DELETE FROM book WHERE id = 1")
    sites.settle()
    told = audit(sites.capetown)
    sites.london.run("INSERT INTO book VALUES (1, 'for a moment', 20)", "DELETE FROM book WHERE id = 1")
    came = At("hook", lambda: sites.capetown.run("INSERT INTO book VALUES (1, 'again', 30)"))
    assert carried(sites.run(at=came)).applied == 1
    assert audit(sites.capetown) == told
    sites.settle()
    assert (1, 30) in prices(sites)
