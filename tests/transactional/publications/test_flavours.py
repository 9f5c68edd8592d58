"""The five kinds of copies, and the servers that they are between."""

from collections.abc import Callable

from concord.configuration.configuration import Configuration
from concord.jobs.replication import Updates
from concord.jobs.snapshot import SnapshotKind
from tests.given.configured_replications import BASE, BOOKINGS, section

Parse = Callable[[str | bytes], Configuration]


def test_each_of_the_five_kinds_is_chosen_by_one_word(parse: Parse) -> None:
    """S4-001, S4-171: two snapshots, rows both ways, transactions one way and both ways; servers are named once."""
    text = BASE.replace("connection: capetown", "connection: capetown\n    log_reader: cape_log", 1)
    text = text.replace(
        "\nsynchronizations:",
        "  rooms: {tables: [{table: public.rooms}]}\n\nsynchronizations:",
        1,
    )
    copy = {"source": "london", "target": "capetown", "from": "public.plans"}
    made = parse(
        text
        + section(
            "snapshots",
            {
                "whole": copy | {"kind": "non_incremental", "table": "s.whole"},
                "changes": copy | {"kind": "incremental", "table": "s.changes"},
            },
        )
        + section(
            "replications",
            {
                "one_way": BOOKINGS,
                "two_ways": BOOKINGS | {"replication_set": "rooms", "updates": "both"},
            },
        )
    )
    assert {each.kind for each in made.snapshots.values()} == set(SnapshotKind)
    assert made.synchronizations
    assert [made.replication(name).updates for name in ("one_way", "two_ways")] == [
        Updates.PUBLISHER,
        Updates.BOTH,
    ]
    assert made.sites["capetown"].connection == "capetown"
