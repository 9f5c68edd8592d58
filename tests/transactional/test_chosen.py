"""Tables of which a replication carries some columns or rows, or whose columns have other names (S0-06, S2-23)."""

from collections.abc import Callable

import pytest

from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import EntryRefused, NotInitialized, ProvisioningRefused, StructureChanged
from concord.tables.privacy import Treatment
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.chosen_flights import BASES, FLIGHT, LONG, chosen_flights
from tests.given.refused_entry import stopped_at
from tests.given.replicated_sites import Replicated
from tests.given.site import Rows

Make = Callable[..., Replicated]


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return chosen_flights(replicated)


def here(sites: Replicated) -> Rows:
    return sites.capetown.rows("SELECT number, base, aircraft, note FROM flight ORDER BY number")


def expected(sites: Replicated) -> Rows:
    """In the words of the filter, by London's own table."""
    return sites.london.rows(
        "SELECT id, base, plane, note FROM flight WHERE base IN ('CPT', 'JNB') ORDER BY id"
    )


def test_a_copy_and_the_log_after_it_carry_the_same_columns_and_rows(sites: Replicated) -> None:
    assert [row[0] for row in here(sites)] == [1, 2]
    assert here(sites) == expected(sites)
    sites.london.run(
        "INSERT INTO flight VALUES (5, 'CPT', 'E', 's', 'n'), (6, 'LHR', 'F', 's', 'n')",
        "UPDATE flight SET plane = 'Z'",
        "UPDATE flight SET id = 10 WHERE id = 1",
        "DELETE FROM flight WHERE id IN (5, 6)",
    )
    report = sites.run()
    assert (report.entries, report.operations, report.conversions) == (4, 1 + 3 + 1 + 1, 0)
    assert here(sites) == expected(sites)


def test_a_row_that_leaves_the_filter_goes_and_one_that_enters_comes_whole(sites: Replicated) -> None:
    """T18; the long value of the row that enters was not changed, and not sent with the update."""
    sites.london.run(
        "UPDATE flight SET base = 'LHR' WHERE id = 1", "UPDATE flight SET base = 'CPT' WHERE id = 3"
    )
    report = sites.run()
    [flight, _] = report.tables
    assert (flight.deleted, flight.inserted, report.conversions) == (1, 1, 0)
    assert here(sites) == expected(sites)
    assert here(sites)[-1] == (3, "CPT", "C", LONG)


def test_one_row_that_comes_and_goes_within_and_across_transactions_keeps_their_order(
    sites: Replicated,
) -> None:
    def change(base: str, key: int = 1) -> str:
        return f"UPDATE flight SET base = '{base}', id = {key} WHERE id IN (1, 11)"

    with sites.london.log_in(sites.london.superuser, autocommit=False) as user:
        for statement in (change("LHR"), change("CPT", 11), change("LHR", 1), change("JNB", 11)):
            user.execute(statement)
    sites.london.run(change("LHR"), change("CPT"), change("LHR", 11), change("CPT", 1))
    sites.run()
    assert here(sites) == expected(sites)
    assert here(sites)[0][:2] == (1, "CPT")


def test_a_chosen_table_and_a_whole_one_stay_in_one_transaction(sites: Replicated) -> None:
    """S0-02; of a transaction that only wrote rows outside the filter nothing comes."""
    sites.london.run(
        "WITH f AS (INSERT INTO flight VALUES (7, 'CPT', 'G', 's', 'n') RETURNING id)"
        " INSERT INTO seat SELECT 1, id FROM f",
        "UPDATE flight SET plane = 'Y' WHERE base = 'LHR'",
    )
    assert sites.run().entries == 1
    by = "SELECT xmin::text FROM"
    assert sites.capetown.value(f"{by} flight WHERE number = 7") == sites.capetown.value(f"{by} seat")


def test_an_unchanged_value_that_is_not_sent_stays(sites: Replicated) -> None:
    sites.london.run("UPDATE flight SET plane = 'Y' WHERE id = 2", "UPDATE flight SET id = 12 WHERE id = 2")
    sites.run()
    assert here(sites) == expected(sites)


def test_another_filter_needs_provisioning_and_then_another_copy(sites: Replicated) -> None:
    """Rows that are in scope now, and were not, stand in no log."""
    whole = FLIGHT.model_copy(update={"where": None})
    sites.tables = (whole, *sites.tables[1:])
    with pytest.raises(StructureChanged, match="run `provision`"):
        sites.run()
    sites.provision()
    with pytest.raises(NotInitialized, match="other columns or rows than when it was initialized"):
        sites.run()
    sites.initialize(replace=True)
    assert [row[0] for row in here(sites)] == [1, 2, 3, 4]
    assert sites.london.value("SELECT relreplident = 'd' FROM pg_class WHERE relname = 'flight'")
    sites.london.run("UPDATE flight SET plane = 'X', base = 'LHR'")
    sites.run()
    assert {row[1:3] for row in here(sites)} == {("LHR", "X")}


def test_a_filter_by_a_type_that_no_publication_compares_is_refused(replicated: Make) -> None:
    kinds = ("CREATE TYPE kind AS ENUM ('a', 'b')", "CREATE TABLE item (id int PRIMARY KEY, kind kind)")
    made = replicated(kinds, "public.item")
    made.tables = (
        ReplicatedTable(table=parse_table_name("public.item"), where="kind = 'a'"),  # type: ignore[arg-type]
    )
    with pytest.raises(ProvisioningRefused, match="no type of PostgreSQL's own"):
        made.provision()


def test_a_replica_identity_that_somebody_made_full_is_refused_before_updates_of_listed_columns_are(
    replicated: Make,
) -> None:
    made = replicated(BASES, "public.seat")
    made.london.run("ALTER TABLE flight REPLICA IDENTITY FULL")
    listed = FLIGHT.model_copy(update={"where": None})
    made.tables = (listed,)
    with pytest.raises(ProvisioningRefused, match="its replica identity is FULL"):
        made.provision()


def test_a_private_column_stays_hidden_under_its_other_name(sites: Replicated) -> None:
    """A refused transaction that is set aside stands in `concord.skipped`, which people read."""
    sites.tables = (FLIGHT.model_copy(update={"private": {"plane": Treatment.DROPPED}}), *sites.tables[1:])
    sites.capetown.run("ALTER TABLE flight ADD CONSTRAINT small CHECK (number < 100)")
    sites.london.run("INSERT INTO flight VALUES (200, 'CPT', 'unseen', 's', 'seen')")
    with pytest.raises(EntryRefused) as caught:
        sites.run()
    number = stopped_at(caught.value)
    sites.run(set_aside=SetAside(number=number, how=Aside.SKIP, reason="large", by="ada"))
    text = sites.capetown.value("SELECT operations::text FROM concord.skipped")
    assert ("unseen" in text, "seen" in text.replace("unseen", "")) == (False, True)
