"""A hook sees the rows that are about to be written: it leaves, changes or refuses each, and adds rows elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
import pytest

from concord.databases.postgresql.facts import row_image
from concord.databases.postgresql.hooks import hooked
from concord.messages.errors import HookFailed
from concord.rules.hook import Added, Hook
from concord.rules.hook_function import AboutToBeWritten, Hooked, Verdict, Word
from concord.rules.merging import BY_HOOK
from concord.rules.policy import Policy
from concord.values.identifier import parse_table_name
from concord.values.interval import Interval
from concord.versions.row_version import RowVersion
from tests.given.at_step import At
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, Outcome, WrittenSite, made

#: Nothing carries the second table: rows of a hook are added there.
DDL = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, price int)",
    "CREATE TABLE audit (n int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, book int, price int CHECK (price < 1000))",
)
AUDIT = "public.audit"
HOOK = Hook(call="a_package:a_hook", adds=(Added(table=parse_table_name(AUDIT), columns=("book", "price")),))
FIRST = made("capetown", 10)
HERE = {"id": 1, "title": "here", "price": 10}
APPLY = Word(Verdict.APPLY, None, "", {})

Decides = Callable[[AboutToBeWritten], Word]


class HookedSite:
    """The site, and every batch that its hook was shown."""

    def __init__(self, target: WrittenSite) -> None:
        self.target, self.batches = target, list[list[AboutToBeWritten]]()

    def write(self, *changes: Change, decides: Decides = lambda row: APPLY, **writing: Any) -> Outcome:
        def ask(shown: Hooked, batch: Sequence[AboutToBeWritten]) -> list[Word]:
            assert (shown.site, shown.table, shown.names) == (
                "capetown",
                "public.book",
                ("id", "price", "title"),
            )
            self.batches.append(list(batch))
            return [decides(row) for row in batch]

        return self.target.write(*changes, ask_hook=ask, **writing)

    @property
    def shown(self) -> list[AboutToBeWritten]:
        return [row for batch in self.batches for row in batch]

    @property
    def audit(self) -> list[tuple[Any, ...]]:
        return self.target.site.rows("SELECT book, price FROM audit ORDER BY n")


@pytest.fixture
def site(written_site: MakeWritten) -> HookedSite:
    target = written_site(*DDL).configured(hooks={"capetown": HOOK})
    target.site.run("ALTER SEQUENCE audit_n_seq RESTART")
    return HookedSite(target)


def update(price: int, key: int = 1, version: RowVersion | None = None, title: str = "there") -> Change:
    return Change({"id": key, "title": title, "price": price}, version or made("london", 20, FIRST))


def delete(version: RowVersion) -> Change:
    return Change({"id": 1}, version)


def texts(row: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in row.items()}


def refusing(row: AboutToBeWritten) -> Word:
    return Word(Verdict.REFUSE, None, "too dear", {})


def doubling(row: AboutToBeWritten) -> Word:
    assert row.incoming is not None
    return Word(Verdict.CHANGE, {**row.incoming, "price": str(2 * int(row.incoming["price"] or 0))}, "", {})


def auditing(row: AboutToBeWritten) -> Word:
    now = row.incoming or row.present or {}
    return APPLY._replace(added={AUDIT: [{"book": now["id"], "price": now["price"]}]})


def test_a_hook_is_shown_the_row_that_comes_and_the_row_that_is_there(site: HookedSite) -> None:
    """S2-25"""
    site.target.keep(HERE, FIRST)
    change = update(20)
    site.write(change)
    (row,) = site.shown
    assert (row.operation, row.incoming, row.present) == ("update", texts(change.row), texts(HERE))
    assert (row.origin, row.changed_at, row.changeable) == ("london#1", 20, True)


def test_an_insert_has_no_row_that_is_there_and_a_delete_none_that_comes(site: HookedSite) -> None:
    site.target.keep(HERE, FIRST)
    site.write(
        delete(made("london", 20, FIRST, deleted=True)),
        update(5, key=2, version=made("london", 20, born=True)),
    )
    assert [(row.operation, row.incoming is None, row.present is None) for row in site.shown] == [
        ("delete", True, False),
        ("insert", False, True),
    ]


@pytest.mark.parametrize(
    ("present", "incoming"),
    [
        (made("capetown", 30), made("london", 20)),
        (made("capetown", 30, made("london", 20)), made("london", 20)),
        (made("london", 20), made("london", 20)),
    ],
    ids=["it loses", "it is superseded", "it has been written"],
)
def test_a_row_that_is_not_written_is_not_shown(
    site: HookedSite, present: RowVersion, incoming: RowVersion
) -> None:
    site.target.keep(HERE, present)
    site.write(update(20, version=incoming), decides=refusing)
    assert site.shown == []
    assert site.target.waiting() == []


def test_a_delete_of_a_row_that_is_not_there_is_not_shown(site: HookedSite) -> None:
    gone = made("capetown", 10, deleted=True)
    site.target.keep(HERE, gone)
    site.write(delete(made("london", 20, gone, deleted=True)))
    assert site.shown == []


def test_a_winner_and_a_merge_are_shown_as_they_will_be_written(site: HookedSite) -> None:
    site.target = site.target.configured(policy=Policy(resolvers=("average(price)",)))
    site.target.keep(HERE, FIRST)
    site.write(update(20, version=made("london", 20)))
    (row,) = site.shown
    assert row.incoming is not None
    assert (row.incoming["price"], row.origin) == ("15", "capetown#1")


def test_a_changed_row_is_a_new_version_of_this_site_that_has_seen_both(site: HookedSite) -> None:
    """It is announced like an edit: the source follows, too."""
    site.target.keep(HERE, FIRST)
    incoming = made("london", 20, FIRST)
    assert site.write(update(20, version=incoming), decides=doubling).counts == {"acquired": 1, "applied": 1}
    assert site.target.row(1) == {"id": 1, "title": "there", "price": 40}
    known = site.target.known(1)
    assert known is not None
    assert (known.version.origin, known.version.derived, known.received_from) == ("capetown#1", BY_HOOK, None)
    assert known.version.includes(incoming)
    assert known.version.includes(FIRST)


def test_what_one_hook_has_changed_another_one_may_not_change(site: HookedSite) -> None:
    site.write(update(20, version=made("london", 20, derived=BY_HOOK, born=True)))
    assert [row.changeable for row in site.shown] == [False]


def test_a_changed_winner_is_logged_as_the_winner_that_came_in(site: HookedSite) -> None:
    site.target.keep(HERE, FIRST)
    written = site.write(update(20, version=made("london", 20)), decides=doubling)
    assert written.counts == {"acquired": 1, "applied": 1, "conflicts": 1}
    (entry,) = site.target.conflicts()
    assert (entry["winner_site"], entry["loser_row"]["title"]) == ("london", "here")
    found = site.target.row(1)
    assert found is not None
    assert found["price"] == 40


def test_a_refused_row_waits_with_the_name_of_the_hook_and_its_reason(site: HookedSite) -> None:
    site.target.keep(HERE, FIRST)
    other = update(5, key=2, version=made("london", 20, born=True))
    written = site.write(update(200), other, decides=lambda row: refusing(row) if row.present else APPLY)
    assert written.counts == {"acquired": 2, "applied": 1, "quarantined": 1}
    assert site.target.waiting() == [("quarantined", "the hook a_package:a_hook refuses it: too dear")]
    assert site.target.row(1) == HERE
    known = site.target.known(1)
    assert known is not None
    assert known.version == FIRST


def test_a_refused_winner_defeats_nobody(site: HookedSite) -> None:
    site.target.keep(HERE, FIRST)
    written = site.write(update(200, version=made("london", 20)), decides=refusing)
    assert written.counts == {"acquired": 1, "quarantined": 1}
    assert site.target.conflicts() == []


@pytest.mark.parametrize("most", [1, 2])
def test_a_hook_refuses_no_more_rows_than_may_wait(site: HookedSite, most: int) -> None:
    changes = [update(5, key=key, version=made("london", 20, born=True)) for key in (1, 2)]
    job = site.target.job(max_quarantined=most)
    if most == 2:
        assert site.write(*changes, decides=refusing, job=job).counts["quarantined"] == 2
        return
    with pytest.raises(HookFailed, match=r"refuses more rows than max_quarantined \(1\): too dear"):
        site.write(*changes, decides=refusing, job=job)
    assert site.target.waiting() == []


def test_rows_are_added_in_the_order_of_the_rows_that_they_belong_to(site: HookedSite) -> None:
    changes = [update(key, key=key, version=made("london", 20, born=True)) for key in (3, 1, 2)]
    site.write(*changes, decides=auditing)
    assert site.audit == [(1, 1), (2, 2), (3, 3)]


def test_for_a_row_that_the_hook_refuses_none_is_added(site: HookedSite) -> None:
    changes = [update(key, key=key, version=made("london", 20, born=True)) for key in (1, 2)]
    refused = lambda row: auditing(row)._replace(verdict=Verdict.REFUSE)  # noqa: E731
    site.write(*changes, decides=lambda row: refused(row) if row.incoming["id"] == "1" else auditing(row))  # type: ignore[index]
    assert site.audit == [(2, 2)]


def test_a_row_that_the_other_table_refuses_ends_the_run_and_nothing_is_written(site: HookedSite) -> None:
    with pytest.raises(HookFailed, match=r"adds a row that public\.audit refuses: .*nothing was written"):
        site.write(update(5000, version=made("london", 20, born=True)), decides=auditing)
    assert site.target.row(1) is None
    assert site.audit == []


@pytest.mark.parametrize("many", [5, 6])
def test_rows_are_shown_in_batches_in_the_order_of_their_keys(
    site: HookedSite, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooked, "BATCH", 3)
    keys = list(range(1, many + 1))
    changes = [update(key, key=key, version=made("london", 20, born=True)) for key in reversed(keys)]
    decides = lambda row: doubling(row) if int(row.incoming["id"]) % 2 else APPLY  # noqa: E731
    site.write(*changes, decides=decides)
    assert [len(batch) for batch in site.batches] == ([3, 2] if many == 5 else [3, 3])
    assert [int(row.incoming["id"] or 0) for row in site.shown if row.incoming] == keys
    assert site.target.site.rows("SELECT id, price FROM book ORDER BY id") == [
        (key, 2 * key if key % 2 else key) for key in keys
    ]


def test_nobody_edits_a_row_while_its_hook_is_asked(site: HookedSite) -> None:
    site.target.keep(HERE, FIRST)

    def decides(row: AboutToBeWritten) -> Word:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            site.target.site.rows("SELECT FROM book WHERE id = 1 FOR UPDATE NOWAIT")
        return APPLY

    assert site.write(update(20), decides=decides).counts == {"acquired": 1, "applied": 1}


@pytest.mark.parametrize("edited", [False, True])
def test_a_transaction_that_is_repeated_forgets_what_the_hook_said(site: HookedSite, edited: bool) -> None:
    """It asks again about what is written then; a row that was edited in between is not."""
    target = site.target
    target.keep(HERE, FIRST)
    fails = "DO $$BEGIN RAISE EXCEPTION 'a deadlock' USING ERRCODE = '40P01'; END$$"
    once = At("shadow", lambda: target.at_hand().execute(fails.encode()))
    edit = "UPDATE book SET price = 11" if edited else "SELECT 1"
    between = At("hold_fence", lambda: target.site.as_application(edit), occurrence=2)
    site.write(update(20), decides=auditing, progress=lambda step: (once(step), between(step)))
    assert (once.reached, between.reached) == (2, 2)
    assert len(site.shown) == (1 if edited else 2)
    assert site.audit == ([] if edited else [(1, 20)])


def test_a_repair_and_an_initialization_ask_no_hook(site: HookedSite) -> None:
    site.write(update(20), decides=refusing, session=False)
    assert site.shown == []
    assert site.target.row(1) is not None


def test_a_row_that_a_backfill_restores_is_not_shown_again(site: HookedSite) -> None:
    version = made("london", 20)
    site.target.keep(HERE, version, received_from="london")
    site.target.site.as_applier("SET LOCAL concord.applying = 'on'", "DELETE FROM public.book")
    ever = site.target.job(interval=Interval(start=0, end=100))
    assert site.write(update(20, version=version), decides=refusing, job=ever).counts.get("restored") == 1
    assert site.shown == []


def test_a_table_without_a_hook_here_is_not_shown(site: HookedSite) -> None:
    site.target = site.target.configured(hooks={"london": HOOK})
    site.write(update(20), decides=refusing)
    assert site.shown == []
    assert site.target.waiting() == []


@pytest.mark.parametrize(("here", "there"), [("here", "x" * 1_000), ("x" * 1_000, "there")])
def test_a_row_that_is_too_large_to_be_shown_waits(
    site: HookedSite, monkeypatch: pytest.MonkeyPatch, here: str, there: str
) -> None:
    monkeypatch.setattr(row_image, "LARGEST", 1_000)
    site.target.keep({**HERE, "title": here}, FIRST)
    written = site.write(update(20, title=there), update(30, key=2, version=made("london", 30, born=True)))
    assert written.counts == {"acquired": 2, "applied": 1, "quarantined": 1}
    assert [row.incoming and row.incoming["id"] for row in site.shown] == ["2"]
    assert "more than the 1,000 that the conflict log keeps of a row" in site.target.waiting()[0][1]
