"""Which versions all sites agree to forget, and how they are forgotten in two steps, each repeatable (rule 10).

First every site marks a version as agreed. Only what all have marked is deleted, anywhere. An edit of an agreed
version has seen it. One of a forgotten version is later than it. So both apply everywhere, whatever the other sites
have done by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import in_our_words, one, rows, run
from concord.databases.postgresql.facts.plans import BY_KEY, LOOK_UP
from concord.databases.postgresql.initialize import progress as initialization_state
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.upkeep import flagged_rows
from concord.databases.postgresql.upkeep.holder import Holder, Limits, Stand, Version, listed, listed_key
from concord.messages.errors import WriteContended
from concord.messages.pace import Meter

Stands = Mapping[Holder, Sequence[Stand]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Versions that may go at every site, and what each site says of them."""

    versions: Sequence[Version]
    stands: Stands = field(repr=False)

    @property
    def floor(self) -> int:
        """µs; no stamp that is forgotten with them is greater, so that none is given out again."""
        return max(each.newest for stands in self.stands.values() for each in stands if each.same)

    @property
    def tombstones(self) -> int:
        return sum(each.deleted for each in self.versions)

    @property
    def living(self) -> int:
        return len(self.versions) - self.tombstones

    def waiting(self, holder: Holder) -> Counter[str]:
        """Unheeded links of the site, and for how many of these versions each still waits."""
        return Counter(link for each in self.stands[holder] for link in each.waiting)

    def forced(self, holder: Holder) -> int:
        """How many some unheeded link of the site waits for."""
        return sum(bool(each.waiting) for each in self.stands[holder])

    def only(self, chosen: Sequence[bool]) -> Agreement:
        """Those of them alone."""
        return Agreement(
            _those(self.versions, chosen), {h: _those(s, chosen) for h, s in self.stands.items()}
        )


T = TypeVar("T")


def _those(values: Sequence[T], chosen: Sequence[bool]) -> list[T]:
    return [value for value, is_chosen in zip(values, chosen, strict=True) if is_chosen]


def agreements(holders: Sequence[Holder], limits: Limits, meter: Meter) -> Iterator[Agreement]:
    """Batches of versions that may go, each once, in the order in which the sites keep them."""
    for place, lead in enumerate(holders):
        for blocks, found in lead.batches(limits):
            if found:
                agreement = _agreement(place, lead, found, holders, limits)
                if agreement.versions:
                    yield agreement
            meter.done += blocks


def _agreement(
    place: int, lead: Holder, found: Mapping[Version, Stand], holders: Sequence[Holder], limits: Limits
) -> Agreement:
    versions = list(found)
    stands: dict[Holder, Sequence[Stand]] = {
        each: list(found.values()) if each is lead else each.stands(versions, limits) for each in holders
    }
    told = zip(*stands.values(), strict=True)
    chosen = [
        _may_go(each, said) and not any(one.goes for one in said[:place])  # an earlier site named it
        for each, said in zip(versions, told, strict=True)
    ]
    return Agreement(versions, stands).only(chosen)


def _may_go(version: Version, said: Sequence[Stand]) -> bool:
    """Every site holds it, or has its key outside of the row filter. Or some site has agreed: all held it then. The
    cleanup died before all had marked it, or before all had forgotten it. A site that knows nothing of it has forgotten
    it, or has joined since.

    Not so where a site holds another version of a living row by then. The site may have edited it before it was asked
    to agree. That edit arrives, and takes this one's place.
    """
    if all(each.goes or each.outside for each in said):
        return True
    same = [each for each in said if each.same]
    agreed = any(each.agreed for each in same) and all(each.goes for each in same)
    return agreed and (version.deleted or all(each.same or each.nothing for each in said))


def publish(holders: Sequence[Holder], agreement: Agreement) -> Agreement:
    """Mark them at every site, and raise both floors, before any site deletes one; those that all have marked.

    A version that was edited meanwhile, or that a user holds, is left for another day. A link that is not waited for
    falls below its floor here: it resumes nothing until it is initialized.
    """
    for each in holders:
        if agreement.versions:
            agreement = agreement.only(_publish(each, agreement))
    return agreement


def _publish(each: Holder, agreement: Agreement) -> list[bool]:
    """Which of the versions are agreed at this site by now, or not held there."""
    stands = agreement.stands[each]
    new = [stand.same and not stand.agreed for stand in stands]
    try:
        with _yielding(each):
            if not _raised(each, agreement):
                return [False] * len(stands)
            marked = _mark(each, _those(agreement.versions, new))
    except WriteContended:
        return [False] * len(stands)
    places = iter(range(1, len(stands) + 1))
    return [not is_new or next(places) in marked for is_new in new]


def _raised(each: Holder, agreement: Agreement) -> bool:
    """Raise both floors; False where an initialization of the table has begun, which may still tell the versions.

    Nor is the stamp floor raised into the future, whatever another site says of its versions: users' edits would be
    stamped later still.
    """
    floor = agreement.floor
    if _somebody_came(each) or one(each.connection, f"SELECT {floor} > {each.latest}")[0]:
        return False
    held = 0
    for link in each.heeded:
        assert link.session is not None, "a link that never ran is heeded by keeping everything"
        held += link_state.raise_floor(each.connection, link.name, each.table, link.session)
    for name in agreement.waiting(each):
        link_state.force_below_floor(each.connection, name)
    run(each.connection, f"UPDATE concord.site SET stamp_floor = {floor} WHERE stamp_floor < {floor}")
    return held == len(each.heeded)


def _somebody_came(each: Holder) -> bool:
    """Has a site joined since this cleanup began, or does one now? It may have read a version that is not agreed, and
    nobody asks it. Until the transaction ends, no other one begins. Then it finds what is agreed by now."""
    initialization_state.share(each.connection)
    table = literal(each.table)
    known = ", ".join(literal(link.name) for link in (*each.heeded, *each.unheeded))
    return bool(
        rows(
            each.connection,
            f"SELECT 1 FROM concord.link_state WHERE role = 'source' AND initialized ? {table}"
            f" AND link NOT IN ({known}) UNION ALL"
            f" SELECT 1 FROM concord.initialization WHERE table_name = {table} LIMIT 1",
        )
    )


def _mark(each: Holder, versions: Sequence[Version]) -> set[int]:
    """The numbers of those that are marked. An insert that all sites have had is none of an unknown row any more.

    A version that has seen more since it was asked about may be news to somebody again: it must have been sent.
    """
    if not versions:
        return set()
    found = _held(each, versions, each.passed)
    return {
        number
        for (number,) in rows(
            each.connection,
            f"WITH held AS MATERIALIZED ({found}) UPDATE {each.shape.shadow.sql} p"
            " SET agreed = true, born = p.born AND p.deleted FROM held h WHERE p.ctid = h.at RETURNING h.n",
        )
    }


def _held(each: Holder, versions: Sequence[Version], condition: str) -> str:
    """Query: where the listed versions stand, those that nobody else is about to write; locked."""
    same = f"{listed_key(each.shape, 'p')} AND {_SAME}"
    return (
        f"SELECT p.ctid AS at, g.n FROM {listed(versions)} JOIN {each.shape.shadow.sql} p ON {same}"
        f" WHERE {condition} FOR UPDATE OF p SKIP LOCKED"
    )


_SAME = "(p.origin, p.changed_at, p.derived, p.deleted) = (g.origin, g.changed_at, g.derived, g.deleted)"


def delete(each: Holder, agreement: Agreement) -> tuple[int, int]:
    """Delete at one site what is agreed at all: how many tombstones, and how many versions of rows."""
    held = sum(stand.same for stand in agreement.stands[each])
    if not held:
        return 0, 0
    try:
        with _yielding(each):
            if not _still_initialized(each):
                return 0, 0
            return (_delete if each.shape.marks is None else _delete_flagged)(each, agreement)
    except WriteContended:
        return 0, 0


def _still_initialized(each: Holder) -> bool:
    """Until the transaction ends, no initialization of the table begins, which would tell these versions again."""
    names = ", ".join(literal(link.name) for link in each.heeded)
    found = f"link IN ({names}) AND role = 'source' AND initialized ? {literal(each.table)}"
    (held,) = one(
        each.connection,
        f"SELECT count(*) FROM (SELECT 1 FROM concord.link_state WHERE {found} FOR SHARE) x",
    )
    return int(held) == len(each.heeded)


def _delete(each: Holder, agreement: Agreement) -> tuple[int, int]:
    if agreement.living:
        name, floor = literal(each.table), agreement.floor
        run(
            each.connection,
            f"UPDATE concord.replicated_table SET forgotten = {floor} WHERE name = {name}"
            f" AND coalesce(forgotten, 0) < {floor}",
        )
    tombstones, living = one(
        each.connection,
        f"WITH held AS MATERIALIZED ({_held(each, agreement.versions, 'p.agreed')}),"
        f" gone AS (DELETE FROM {each.shape.shadow.sql} p USING held h WHERE p.ctid = h.at RETURNING p.deleted)"
        " SELECT count(*) FILTER (WHERE deleted), count(*) FILTER (WHERE NOT deleted) FROM gone",
    )
    return int(tombstones), int(living)


def _delete_flagged(each: Holder, agreement: Agreement) -> tuple[int, int]:
    shape = each.shape
    flagged_rows.lock(each.connection, shape)
    these = listed(agreement.versions)
    same = f"{listed_key(shape, 'p')} AND {_SAME} AND p.agreed"
    run(each.connection, *flagged_rows.statements(shape, these, same))
    removed = run(
        each.connection,
        f"DELETE FROM {shape.shadow.sql} p USING {these} WHERE {same} AND {flagged_rows.gone(shape)}",
    )
    return removed, 0


def drop_placeholders(each: Holder) -> None:
    """Keys that a link had locked and not written: nobody's version. Where the application keeps marks, rows without a
    version are remembered so."""
    if each.shape.marks is not None:
        return
    shadow = each.shape.shadow.sql
    free = f"SELECT p.ctid AS at FROM {shadow} p WHERE p.origin = '' FOR UPDATE SKIP LOCKED"
    with _yielding(each):
        run(each.connection, f"DELETE FROM {shadow} p USING ({free}) h WHERE p.ctid = h.at")


@contextmanager
def _yielding(each: Holder) -> Iterator[None]:
    """A transaction that gives way to applications; what it could not do, the next cleanup does. Raises
    WriteContended, and what the site raises."""
    try:
        with each.connection.transaction():
            run(each.connection, "SET LOCAL deadlock_timeout = '20ms'", "SET LOCAL lock_timeout = '500ms'")
            if not each.shape.manipulation:
                run(each.connection, LOOK_UP, *BY_KEY)
            yield
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise WriteContended(f"{each.site}: {each.table} is locked; the next cleanup tries again") from error
    except psycopg.Error as error:
        raise in_our_words(error, each.site) from error
