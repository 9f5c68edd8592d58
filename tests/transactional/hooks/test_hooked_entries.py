"""A hook of a replication's table: every operation before it is replayed, in its entry's transaction (S3-08, S3-13)."""

from typing import Any

import pytest

from concord.jobs.replication import Aside, SetAside, Updates
from concord.messages.errors import EntryRefused, HookFailed, ParametersRefused
from concord.rules.hook import Hook
from tests.given import hook_functions
from tests.given.at_step import At
from tests.given.hooked_pair import BOOKS, COLUMNS, audit, hook, hooked_tables
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

AUDIT = "CREATE TABLE audit (n int GENERATED ALWAYS AS IDENTITY, book int, operation text, old numeric, new numeric)"


def hooked(replicated: Make, capetown: Hook, **settings: Any) -> Replicated:
    """London's five books at both sites, and the hook at Cape Town alone."""
    hook_functions.shown.clear()
    hook_functions.meanwhile.clear()
    made = replicated((*BOOKS, AUDIT), "public.book", **settings)
    made.tables = hooked_tables(made.tables, {"capetown": capetown})
    made.provision()
    if settings.get("updates") is Updates.BOTH:
        made.initialize_both_ways(replace=True)
    else:
        made.initialize(replace=True)
    return made


def prices(sites: Replicated) -> list[tuple[Any, ...]]:
    return [(key, int(price)) for key, price in sites.capetown.rows("SELECT id, price FROM book ORDER BY id")]


def several(*statements: str) -> str:
    """One transaction."""
    return f"DO $$BEGIN {'; '.join(statements)}; END$$"


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_a_hook_writes_an_audit_row_with_the_old_and_the_new_price_of_each_operation(
    replicated: Make, capture: str
) -> None:
    """S3-08, S3-13, S2-24: in the publisher's order, also of a row that one transaction changes twice."""
    sites = hooked(replicated, hook("audits", *COLUMNS), capture=capture)
    sites.london.run(
        "UPDATE book SET price = 11 WHERE id = 1",
        several(
            "UPDATE book SET price = 12 WHERE id = 1",
            "INSERT INTO book VALUES (9, 'new', 90)",
            "UPDATE book SET price = 13 WHERE id IN (1, 9)",
            "DELETE FROM book WHERE id = 9",
            "UPDATE book SET id = 7 WHERE id = 2",
            "DELETE FROM book WHERE id = 7",
        ),
    )
    report = sites.run()
    assert (report.entries, report.operations) == (2, 8)
    assert audit(sites.capetown) == [
        (1, "update", 10, 11),
        (1, "update", 11, 12),
        (9, "insert", None, 90),
        (1, "update", 12, 13),
        (9, "update", 90, 13),
        (9, "delete", 13, None),
        (7, "update", 10, 10),
        (7, "delete", 10, None),
    ]
    assert sites.are_equal()
    assert sites.run().entries == 0
    assert len(audit(sites.capetown)) == 8


def test_a_changed_row_is_what_stands_at_the_subscriber(replicated: Make) -> None:
    """S2-24: each operation is changed; those that follow meet what the hook made."""
    sites = hooked(replicated, hook("adds_one"))
    sites.london.run(
        several("UPDATE book SET price = 20 WHERE id = 1", "UPDATE book SET title = 'x' WHERE id = 1"),
        "INSERT INTO book VALUES (9, 'new', 90)",
        "DELETE FROM book WHERE id = 2",
    )
    sites.run()
    assert prices(sites) == [(1, 21), (3, 10), (4, 10), (5, 10), (9, 91)]
    assert sites.capetown.value("SELECT title FROM book WHERE id = 1") == "x"


def test_a_large_transaction_goes_the_same_way(replicated: Make) -> None:
    sites = hooked(replicated, hook("audits", *COLUMNS), set_based_from=10)
    sites.london.run(
        "INSERT INTO book SELECT n, 'many', 1 FROM generate_series(100, 4600) n",
        "UPDATE book SET price = 2 WHERE id > 99",
    )
    sites.run()
    assert sites.are_equal()
    assert sites.capetown.rows("SELECT operation, count(*), min(new) FROM audit GROUP BY 1 ORDER BY 1") == [
        ("insert", 4501, 1),
        ("update", 4501, 2),
    ]


def test_a_refusal_stops_with_the_number_of_the_entry_and_nothing_of_it_stands(replicated: Make) -> None:
    """S2-21, S2-22: as any operation that cannot be replayed; a person may skip it."""
    sites = hooked(replicated, hook("refuses_dear"))
    sites.london.run(
        "UPDATE book SET price = 20 WHERE id = 1",
        several("UPDATE book SET price = 21 WHERE id = 2", "UPDATE book SET price = 300 WHERE id = 3"),
        "UPDATE book SET price = 22 WHERE id = 4",
    )
    for _ in range(2):
        with pytest.raises(EntryRefused) as refused:
            sites.run()
        said = refused.value.message
        assert (
            "at its update of public.book: the hook tests.given.hook_functions:refuses_dear refuses it"
            in said
        )
        assert "too dear (error CNC08)" in said
        assert prices(sites) == [(1, 20), (2, 10), (3, 10), (4, 10), (5, 10)]
    number = int(said.split("entry ")[1].split(",")[0])
    with pytest.raises(ParametersRefused, match="use `entry skip`"):
        sites.run(set_aside=SetAside(number=number, how=Aside.QUARANTINE, reason="dear", by="ada"))
    sites.run(set_aside=SetAside(number=number, how=Aside.SKIP, reason="dear", by="ada"))
    assert prices(sites) == [(1, 20), (2, 10), (3, 10), (4, 22), (5, 10)]


@pytest.mark.parametrize("step", ["stage", "replay", "confirm"])
def test_whatever_is_killed_each_operation_is_audited_once(replicated: Make, step: str) -> None:
    class Killed(BaseException):
        pass

    def die() -> None:
        raise Killed

    sites = hooked(replicated, hook("audits", *COLUMNS))
    sites.london.run(*(f"UPDATE book SET price = price + 1 WHERE id = {n}" for n in (1, 2, 1)))
    with pytest.raises(Killed):
        sites.run(at=At(step, die))
    sites.run()
    assert audit(sites.capetown) == [(1, "update", 10, 11), (2, "update", 10, 11), (1, "update", 11, 12)]
    assert sites.are_equal()


def test_a_hook_that_fails_ends_the_run_and_what_was_before_stands(replicated: Make) -> None:
    sites = hooked(replicated, hook("breaks"))
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1")
    with pytest.raises(
        HookFailed,
        match=r"capetown: public\.book: the hook tests\.given\.hook_functions:breaks failed: Arith",
    ):
        sites.run()
    assert prices(sites)[0] == (1, 10)
    sites.tables = hooked_tables(sites.tables, {})
    assert sites.run().entries == 1
    assert sites.are_equal()


def test_where_both_sites_write_a_hook_sees_the_row_before_and_may_change_nothing(replicated: Make) -> None:
    """S2-24, S2-25: the other site would not hear of what it made."""
    sites = hooked(replicated, hook("notes"), updates=Updates.BOTH)
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1")
    sites.capetown.run("UPDATE book SET price = 30 WHERE id = 2")
    sites.run_both()
    assert sites.are_equal()
    [[row]] = hook_functions.shown
    old = {"id": 1, "title": "old", "price": "10"}
    assert (row["present"], row["previous"], row["incoming"]) == (old, old, {**old, "price": "20"})
    assert row["origin"] is None
    sites.tables = hooked_tables(sites.tables, {"capetown": hook("adds_one")})
    sites.london.run("UPDATE book SET price = 21 WHERE id = 1")
    with pytest.raises(HookFailed, match="may not change a row where both sites write"):
        sites.run()


def test_a_truncate_is_shown_as_one_and_rows_after_it_as_they_are_then(replicated: Make) -> None:
    sites = hooked(replicated, hook("notes"))
    sites.london.run(several("TRUNCATE book", "INSERT INTO book VALUES (1, 'new', 1)"))
    sites.run()
    seen = [(row["operation"], row["present"]) for batch in hook_functions.shown for row in batch]
    assert seen == [("truncate", None), ("insert", None)]
    assert sites.are_equal()


def test_of_a_long_value_that_was_not_sent_the_hook_sees_what_is_there(replicated: Make) -> None:
    """Unchanged TOAST: it is kept also where the hook changes the row."""
    sites = hooked(replicated, hook("adds_one"))
    long = "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 400) n)"
    sites.london.run(
        "ALTER TABLE book ALTER title SET STORAGE EXTERNAL", f"UPDATE book SET title = {long} WHERE id = 1"
    )
    sites.run()
    sites.london.run("UPDATE book SET price = 20 WHERE id = 1")
    sites.run()
    assert prices(sites)[0] == (1, 21)
    titles = [site.value("SELECT md5(title) FROM book WHERE id = 1") for site in sites.sites]
    assert titles[0] == titles[1]
