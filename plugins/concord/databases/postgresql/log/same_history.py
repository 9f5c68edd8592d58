"""Is the log of a publisher the one that its subscriber has replayed, or another one, as after a restore?

A restored publisher writes other transactions at the places of those that it has lost. Its slot was restored with it,
so that it brings them once more.
"""

from __future__ import annotations

from collections.abc import Iterable

from concord.databases.contract.last_entry import LastEntry
from concord.databases.postgresql.facts.own_schema import SCHEMA
from concord.databases.postgresql.log.first_waiting import LEVEL_ROW
from concord.databases.postgresql.log.frames import Read
from concord.databases.postgresql.log.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    Truncate,
    Update,
    decode,
)
from concord.values.moment import POSTGRESQL, moment


def is_same(
    messages: Iterable[bytes | Read | None], ours: str, last: LastEntry, since: int, level: int
) -> bool:
    """Has the log after `since` the last entry, and no later change of a user up to the level?

    Transactions that the replication `ours` has replayed here are no entries.
    """
    is_copy = last.committed_at is None
    found = is_copy or since >= last.number
    begun, changed, replayed, own = Begin(0, 0), False, False, dict[int, str]()
    for message in messages:
        said = decode(message) if isinstance(message, bytes) else None
        if isinstance(said, Begin):
            begun, changed, replayed = said, False, False
        elif isinstance(said, Relation) and said.schema == SCHEMA:
            own[said.oid] = said.name
        elif isinstance(said, Update) and own.get(said.relation) == LEVEL_ROW[1]:
            replayed = bool(ours) and (said.new[0] or b"")[4:] == ours.encode()
        elif isinstance(said, Commit):
            if said.number > level:
                return found
            if said.number == last.number:
                found = is_copy or moment(begun.committed_at, POSTGRESQL) == last.committed_at
            elif said.number > last.number and changed:
                return False
        else:
            changed = changed or (_is_change(said, own) and not replayed)
    return found


def _is_change(said: Message | None, own: dict[int, str]) -> bool:
    """Of a user's table. An update that changes nothing is no entry where updates are queued."""
    if isinstance(said, Update):
        same = said.old is not None and all(
            value in (UNCHANGED, before) for value, before in zip(said.new, said.old, strict=True)
        )
        return said.relation not in own and not same
    return isinstance(said, Truncate) or (isinstance(said, Insert | Delete) and said.relation not in own)
