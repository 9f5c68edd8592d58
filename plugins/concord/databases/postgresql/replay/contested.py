"""Which operations of the entry that waits first cannot be replayed: a try of all of them, of which nothing stands.

A person decides about their rows, and the others of the entry are replayed (S2-21).
"""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.postgresql.entries.staging import ENTRIES, ReplicatedTable
from concord.databases.postgresql.facts.connection import Connection, in_transaction, one, rows, run
from concord.databases.postgresql.replay import orphans, refused_entry
from concord.databases.postgresql.replay.level import Level
from concord.jobs.replication import ReplicationDefinition
from concord.messages.errors import ParametersRefused


def operations(
    connection: Connection,
    tables: Sequence[ReplicatedTable],
    replication: ReplicationDefinition,
    level: Level,
    number: int,
) -> Sequence[int] | None:
    """By their place in what is staged. None where no entry is staged yet, or a later one is.

    Raises ParametersRefused where another entry waits before it, and LeaseLost.
    """
    (first,) = one(connection, f"SELECT min(number) FROM {ENTRIES} WHERE number > {level.read(connection)}")
    if first is None or first > number:
        return None
    if first < number:
        raise ParametersRefused(
            f"entry {first} of {replication.name} waits before entry {number}; run `python -m concord replicate"
            f" {replication.name}`, and decide about the entry that it names"
        )
    run(connection, refused_entry.one_by_one(tables, replication, level, is_try=True))
    mine = f"EXISTS (SELECT FROM {ENTRIES} e WHERE e.number = {number} AND s.seq > e.seq AND s.seq <= e.last)"
    with in_transaction(connection) as trying:
        (done,) = one(connection, f"SELECT pg_temp.concord_one_by_one({number - 1})")
        if done is None:
            raise level.lost
        found = {seq for seq, _, _ in done[1]}
        for each in orphans.references(tables):
            for orphaned in orphans.of_operations(each, mine):
                found |= {seq for (seq,) in rows(connection, f"SELECT s.seq {orphaned}")}
        trying.last.append("ROLLBACK")
    return sorted(found)


def only(
    connection: Connection,
    tables: Sequence[ReplicatedTable],
    number: int,
    contested: Sequence[int],
    places: Sequence[int],
) -> Sequence[int]:
    """Of an entry's contested operations those at these places, counted from one. Raises ParametersRefused."""
    parts = [
        f"SELECT s.seq FROM {each.staged} s, {ENTRIES} e"
        f" WHERE e.number = {number} AND s.seq > e.seq AND s.seq <= e.last"
        for each in tables
    ]
    found = [seq for (seq,) in rows(connection, f"{' UNION ALL '.join(parts)} ORDER BY seq")]
    chosen = [seq for place, seq in enumerate(found, 1) if place in places and seq in set(contested)]
    if len(chosen) < len(set(places)):
        at = ", ".join(str(found.index(seq) + 1) for seq in contested[:10])
        raise ParametersRefused(
            f"--operation: of entry {number} a person can decide about the operations that meet a row changed at both"
            f" sites, which are {at}"
        )
    return chosen
