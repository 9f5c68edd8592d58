"""A row that does not fit its mapping stops the replication at its transaction, and at no other (S1-34, S4-136)."""

from collections.abc import Callable

import pytest

from concord.databases.registry import dialect
from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import EntryRefused, MappingNotReversible
from concord.tables.manipulation import AnyOperation, Values
from concord.tables.privacy import Treatment
from concord.transactional.upkeep import shown
from tests.given.mapped_replication import OPERATIONS, account, begin_mapped, expected, kept, mapped_table
from tests.given.refused_entry import stopped_at
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]


@pytest.fixture
def sites(replicated: Make, capture: str) -> Replicated:
    made = begin_mapped(replicated, capture=capture)
    made.london.run(account(1))
    made.initialize()
    return made


def refused(sites: Replicated) -> tuple[int, str]:
    """The number of the entry, and the message."""
    with pytest.raises(EntryRefused) as caught:
        sites.run()
    said = caught.value.message
    return stopped_at(caught.value), said


def write(sites: Replicated, unfit: str) -> None:
    """An entry before; one of three operations, of which the second does not fit; an entry after."""
    sites.london.run(
        account(2),
        f"DO $$BEGIN INSERT INTO seat VALUES (1, 2); {unfit}; UPDATE account SET note = 'n' WHERE id = 2; END$$",
        account(5),
    )


@pytest.mark.parametrize(
    ("unfit", "said"),
    [
        (
            account(3, status="'X'"),
            "insert of public.account): it does not fit the mapping (values of status at",
        ),
        (account(3, iban="'BANK1234567'"), "(split of iban at capetown, key 3)"),
        (account(3, last="NULL"), "(combine of first, last at capetown, key 3)"),
        (account(3, first="'Ada Maria'"), "(combine of first, last at capetown, key 3)"),
        ("UPDATE account SET status = 'X' WHERE id = 1", "(values of status at capetown, key 1)"),
        (
            "UPDATE account SET iban = 'BANK1234567', id = 9 WHERE id = 1",
            "(split of iban at capetown, key 9)",
        ),
    ],
)
@pytest.mark.parametrize("set_based_from", [500, 2])
def test_it_stops_there_and_names_operation_table_and_key(
    replicated: Make, unfit: str, said: str, set_based_from: int
) -> None:
    """Nothing of the entry stands, and all before it does (S4-136)."""
    sites = begin_mapped(replicated, set_based_from=set_based_from)
    sites.london.run(account(1))
    sites.initialize()
    write(sites, unfit)
    number, message = refused(sites)
    assert "at operation 2 of 3" in message
    assert said in message
    assert [row[0] for row in kept(sites)] == [1, 2]
    assert sites.capetown.rows("TABLE seat") == []
    assert refused(sites) == (number, message)


def test_a_wider_mapping_lets_it_pass(sites: Replicated) -> None:
    write(sites, account(3, status="'X'"))
    refused(sites)
    wider = Values(canonical=("status",), own=("state",), words={"A": "active", "I": "inactive", "X": "gone"})
    sites.capetown.run("ALTER TYPE state ADD VALUE 'gone'")
    sites.tables = (
        mapped_table([wider if "status" in each.canonical else each for each in OPERATIONS]),
        *sites.tables[1:],
    )
    assert sites.run().entries == 2
    assert [row[5] for row in kept(sites)] == ["active", "active", "gone", "active"]


def test_a_word_that_the_subscribers_type_has_not_stops_at_its_entry(sites: Replicated) -> None:
    """The enumeration is asked when the entry is replayed: nobody else knows its words."""
    other = Values(canonical=("status",), own=("state",), words={"A": "active", "X": "unheard"})
    sites.tables = (
        mapped_table([other if "status" in each.canonical else each for each in OPERATIONS]),
        *sites.tables[1:],
    )
    write(sites, account(3, status="'X'"))
    _, message = refused(sites)
    assert "at operation 2 of 3 (insert of public.account): invalid input value for enum" in message
    assert [row[0] for row in kept(sites)] == [1, 2]


def test_its_operations_are_shown_as_far_as_they_fit(sites: Replicated) -> None:
    write(sites, account(3, status="'X'"))
    number, _ = refused(sites)
    found = shown(sites.job(), dialect, number)
    assert [(each.table, each.operation) for each in found] == [
        ("public.seat", "insert"),
        ("public.account", "insert"),
        ("public.account", "update"),
    ]
    assert found[1].row is not None
    assert (found[1].row["id"], found[1].row["state"]) == (3, None)
    assert found[2].row is not None
    assert found[2].row["full_name"] == "Ada Lovelace"


@pytest.mark.parametrize(("how", "left"), [(Aside.SKIP, 3), (Aside.QUARANTINE, 1)])
def test_a_person_lets_the_others_pass(sites: Replicated, how: Aside, left: int) -> None:
    """S2-22: skip leaves out all of the entry, quarantine what does not fit."""
    write(sites, account(3, status="'X'"))
    number, _ = refused(sites)
    report = sites.run(set_aside=SetAside(number=number, how=how, reason="unknown", by="ada"))
    assert (report.entries, report.set_aside) == (2, left)
    assert [row[0] for row in kept(sites)] == [1, 2, 5]
    assert sites.capetown.value("SELECT count(*) FROM seat") == (how is Aside.QUARANTINE)
    [operations] = [row[0] for row in sites.capetown.rows("SELECT operations FROM concord.skipped")]
    assert len(operations) == left
    if how is Aside.QUARANTINE:
        assert "values of status at capetown, key 3" in operations[0]["error"]


def test_a_private_key_and_private_values_are_not_told(replicated: Make) -> None:
    sites = begin_mapped(
        replicated,
        table=mapped_table().model_copy(
            update={"private": {"id": Treatment.DROPPED, "last": Treatment.DROPPED}}
        ),
    )
    sites.initialize()
    sites.london.run(account(1, last="'unseen'"), account(3, status="'X'", last="'unseen'"))
    number, message = refused(sites)
    assert "(values of status at capetown)" in message
    assert all(
        each.row is None or "full_name" not in each.row for each in shown(sites.job(), dialect, number)
    )
    sites.run(set_aside=SetAside(number=number, how=Aside.SKIP, reason="unknown", by="ada"))
    assert "unseen" not in sites.capetown.value("SELECT operations::text FROM concord.skipped")


def test_a_first_copy_with_such_a_row_leaves_nothing(sites: Replicated) -> None:
    before = kept(sites)
    sites.london.run(account(3, status="'X'"))
    with pytest.raises(
        MappingNotReversible, match=r"values of status at capetown, key 3\. Nothing was written"
    ):
        sites.initialize(replace=True)
    assert kept(sites) == before
    sites.london.run("DELETE FROM account WHERE id = 3")
    sites.initialize(replace=True)
    sites.london.run(account(4))
    sites.run()
    assert kept(sites) == expected(sites)


def test_a_row_that_is_gone_at_the_end_of_its_transaction_stops_it_all_the_same(sites: Replicated) -> None:
    """Each operation is replayed."""
    unfit = account(3, status="'X'")
    sites.london.run(f"DO $$BEGIN {unfit}; DELETE FROM account WHERE id = 3; END$$")
    assert "at operation 1 of 2" in refused(sites)[1]


KEY: tuple[AnyOperation, ...] = (Values(canonical=("id",), own=("id",), words={"a": "x", "b": "y"}),)


@pytest.mark.parametrize("set_based_from", [500, 1])
def test_a_key_without_a_word_stops_inserts_and_updates(replicated: Make, set_based_from: int) -> None:
    sites = begin_mapped(
        replicated,
        "CREATE TABLE item (id text PRIMARY KEY, note text)",
        "CREATE TABLE item (id text PRIMARY KEY, note text)",
        mapped_table(KEY, "item"),
        set_based_from=set_based_from,
    )
    sites.london.run("INSERT INTO item VALUES ('a', 'n'), ('b', 'n')")
    sites.initialize()
    sites.london.run("UPDATE item SET note = 'm' WHERE id = 'a'", "UPDATE item SET id = 'c' WHERE id = 'b'")
    _, message = refused(sites)
    assert "(values of id at capetown, key c)" in message
    assert sites.capetown.rows("TABLE item ORDER BY id") == [("x", "m"), ("y", "n")]
