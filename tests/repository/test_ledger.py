"""The collected conflicts as people ask for them."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine

from concord.jobs.ledger import Overturn
from concord.messages.errors import ParametersRefused
from concord.repository.conflicts import collect_conflicts, record_overturns
from concord.repository.ledger import Chosen, count, entries, find, run_of
from concord.repository.transmissions import record_transmission
from tests.repository.records import NOON, begun, conflict, leased, report


def test_entries_are_chosen_by_what_they_are_and_when_newest_first(repository: Engine) -> None:
    hour = timedelta(hours=1)
    rows = [
        conflict("c1", decided_at=NOON),
        conflict("c2", decided_at=NOON + hour, table_name="public.airlines"),
        conflict("c3", decided_at=NOON + 2 * hour, conflict_type="insert_insert"),
        conflict("c4", decided_at=NOON + 3 * hour, synchronization="london_oslo"),
    ]
    collect_conflicts(repository, rows)
    chosen = {
        "c4 c3 c2 c1": Chosen(),
        "c2": Chosen(table="public.airlines"),
        "c3": Chosen(conflict_type="insert_insert"),
        "c3 c2 c1": Chosen(synchronization="london_capetown"),
        "c3 c2": Chosen(since=NOON + hour, until=NOON + 3 * hour),
    }
    for expected, wanted in chosen.items():
        assert " ".join(entry.id for entry in entries(repository, wanted)) == expected
        assert count(repository, wanted) == len(expected.split())
    assert [entry.id for entry in entries(repository, Chosen(), limit=2)] == ["c4", "c3"]


def test_an_entry_is_found_by_the_beginning_of_its_id_if_that_means_one(repository: Engine) -> None:
    collect_conflicts(repository, [conflict("0abc"), conflict("0abd"), conflict("1%_")])
    assert find(repository, "0abc").id == "0abc"
    assert find(repository, "1%").id == "1%_"
    for beginning, why in {
        "0ab": "several",
        "2": "no conflict",
        "": "no conflict",
        "%": "no conflict",
    }.items():
        with pytest.raises(ParametersRefused, match=why):
            find(repository, beginning)


def test_an_entry_knows_its_run_for_as_long_as_there_is_a_record_of_it(repository: Engine) -> None:
    sent = report()
    run_id = begun(repository, leased(repository, owner="manual__1"))
    record_transmission(repository, run_id, sent, started_at=NOON, ended_at=NOON)
    collect_conflicts(repository, [conflict("c1", transmission=sent.transmission), conflict("c2")])
    assert [run_of(repository, find(repository, name)) for name in ("c1", "c2")] == ["manual__1", None]


def test_an_overturn_is_recorded_once_and_the_first_stays(repository: Engine) -> None:
    collect_conflicts(repository, [conflict("c1"), conflict("c2")])
    version = {"origin": "capetown#1", "changed_at": 7, "derived": 0}
    first = Overturn("c1", "ada", version, False, NOON)
    record_overturns(repository, [first])
    record_overturns(
        repository,
        [first, Overturn("c1", "eve", version, True, NOON), Overturn("gone", "x", version, False, NOON)],
    )
    entry = find(repository, "c1")
    assert (entry.overturned_by, entry.overturned_at, entry.overturned_version) == ("ada", NOON, version)
    assert entry.refusal == "ada overturned it at 2026-03-01 12:00:00 UTC"
    assert find(repository, "c2").overturned_at is None
