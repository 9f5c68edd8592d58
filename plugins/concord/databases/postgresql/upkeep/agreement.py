"""Which tombstones all sites agree to forget, and their removal in two steps, each repeatable (rule 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, in_our_words, rows, run
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.upkeep import flagged_rows
from concord.databases.postgresql.upkeep.outgoing_link import OutgoingLink

#: Tombstones compared at once; bounds the memory of the controller.
BATCH = 50_000

#: key texts, origin, changed_at, derived: what makes the same tombstone at two sites.
Tombstone = tuple[tuple[str, ...], str, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Holder:
    """One table at one site that takes part in the agreement."""

    site: str
    connection: Connection
    shapes: tuple[Shape, ...]  #: one for each row filter that shares the table there
    heeded: tuple[OutgoingLink, ...]  #: links that must have sent a tombstone before it goes
    unheeded: tuple[OutgoingLink, ...]  #: links that a person has said not to wait for

    @property
    def shape(self) -> Shape:
        return self.shapes[0]

    @property
    def table(self) -> str:
        return self.shape.name


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tombstone that may go as far as one site is concerned."""

    tombstone: Tombstone
    newest: int  #: the newest stamp that it has seen: a loser's may be newer than its own
    agreed: bool  #: already published by an earlier cleanup
    waiting: tuple[str, ...]  #: unheeded links that have not sent it


@dataclass(frozen=True, slots=True)
class Agreement:
    """Tombstones that may go at every site, and which unheeded links still wait for how many of them."""

    tombstones: Sequence[Tombstone]
    floor: int  #: µs; greater than any stamp that is forgotten with them, so that none is given out again
    waiting: Mapping[Holder, Counter[str]]
    forced: Mapping[Holder, int]  #: tombstones that some unheeded link of the site waits for


def agreements(holders: Sequence[Holder], before: int) -> Iterator[Agreement]:
    """Batches of tombstones stamped no later than `before` (µs) that may go, in the order of their stamps."""
    after = -1
    while True:
        found = {each: _candidates(each, after, before) for each in holders}
        full = [batch[-1].tombstone[2] for batch in found.values() if len(batch) >= BATCH]
        upto = min(full, default=before)
        if agreed := _agreed(found, upto):
            yield _agreement(found, agreed)
        if not full:
            return
        after = upto


def _candidates(each: Holder, after: int, before: int) -> list[Candidate]:
    shape = each.shape
    key = ", ".join(shape.canonical_key("p"))
    passed = "".join(f" AND NOT ({link.waiting(each.table)})" for link in each.heeded)
    waiting = [
        f"CASE WHEN {link.waiting(each.table)} THEN {literal(link.name)} END"
        for link in each.unheeded
        if link.session
    ]
    query = (
        f"SELECT ARRAY[{key}], origin, changed_at, derived,"
        " greatest(changed_at, concord.vector_newest(vector)), agreed,"
        f" array_remove(ARRAY[{', '.join(waiting)}]::text[], NULL)"
        f" FROM {shape.shadow.sql} p WHERE deleted{passed}"
        f" AND changed_at > {after} AND changed_at <= {before} AND NOT EXISTS"
        f" (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 'p')}{flagged_rows.that_stay(shape)})"
        f" ORDER BY changed_at, origin FETCH FIRST {BATCH} ROWS WITH TIES"
    )
    return [
        Candidate((tuple(k), origin, at, derived), newest, agreed, tuple(links))
        for k, origin, at, derived, newest, agreed, links in rows(each.connection, query)
    ]


def _agreed(found: Mapping[Holder, Sequence[Candidate]], upto: int) -> list[Tombstone]:
    """Those that every site holds, or whose key is outside the row filter where they are not. After a crash also
    those that one site already removed, and the others had agreed."""
    marks: dict[Tombstone, dict[Holder, bool]] = {}
    for each, batch in found.items():
        for candidate in batch:
            if candidate.tombstone[2] <= upto:
                marks.setdefault(candidate.tombstone, {})[each] = candidate.agreed
    outside = {
        each: _outside(each, [one for one, held in marks.items() if each not in held]) for each in found
    }
    return [
        tombstone
        for tombstone, held in marks.items()
        if all(held.values()) or all(each in held or tombstone in outside[each] for each in found)
    ]


def _outside(each: Holder, tombstones: Sequence[Tombstone]) -> set[Tombstone]:
    """Those whose key is out of scope at this site: they did not touch it, and will not (rule 9)."""
    filtered = [shape for shape in each.shapes if shape.where]
    if not filtered or not tombstones:
        return set()
    shape = each.shape
    texts = [
        [literal(text) for text in column] for column in zip(*(key for key, *_ in tombstones), strict=True)
    ]
    arrays = ", ".join(f"ARRAY[{', '.join(column)}]" for column in texts)
    keys = ", ".join(f"k{place}" for place in range(len(texts)))
    private = " OR ".join(f"NOT {shape.in_scope('t')}" for shape in filtered)
    found = rows(
        each.connection,
        f"SELECT g.n FROM unnest({arrays}) WITH ORDINALITY g ({keys}, n) WHERE EXISTS"
        f" (SELECT 1 FROM {shape.shadow.sql} p WHERE {_listed_key(shape, 'p')} AND p.out_of_scope IS NOT NULL)"
        f" OR EXISTS (SELECT 1 FROM {shape.table.sql} t WHERE {_listed_key(shape, 't')} AND ({private}))",
    )
    return {tombstones[n - 1] for (n,) in found}


def _listed_key(shape: Shape, row: str) -> str:
    """The key of `row` is the one that `g` lists as k0, k1, … in canonical texts."""
    if shape.manipulation:
        texts = shape.canonical_key(row)
        return " AND ".join(f"{text} = g.k{place}" for place, text in enumerate(texts))
    return " AND ".join(
        f"{shape.key_in(row, column)} = g.k{place}::{column.type.sql}"
        for place, column in enumerate(shape.key)
    )


def _agreement(found: Mapping[Holder, Sequence[Candidate]], agreed: Sequence[Tombstone]) -> Agreement:
    chosen = set(agreed)
    waited = {
        each: [
            candidate.waiting for candidate in batch if candidate.waiting and candidate.tombstone in chosen
        ]
        for each, batch in found.items()
    }
    waiting = {each: Counter(link for links in listed for link in links) for each, listed in waited.items()}
    newest = [
        candidate.newest for batch in found.values() for candidate in batch if candidate.tombstone in chosen
    ]
    return Agreement(agreed, max(newest), waiting, {each: len(listed) for each, listed in waited.items()})


def publish(holders: Sequence[Holder], agreement: Agreement) -> None:
    """Mark them at every site, and raise both floors, before any site deletes one.

    A link that is not waited for falls below its floor here: it resumes nothing until it is initialized.
    """
    for each in holders:
        with _yielding(each):
            for link in each.heeded:
                assert link.session is not None, "a link that never ran is heeded by keeping everything"
                link_state.raise_floor(each.connection, link.name, link.session)
            for name in agreement.waiting[each]:
                link_state.force_below_floor(each.connection, name)
            _apply(each, agreement, "UPDATE {shadow} p SET agreed = true FROM {listed} g WHERE {same}")
            run(
                each.connection,
                f"UPDATE concord.site SET stamp_floor = {agreement.floor}"
                f" WHERE stamp_floor < {agreement.floor}",
            )


def delete(each: Holder, agreement: Agreement) -> int:
    """Delete at one site what is agreed at all; how many."""
    tombstones = "{shadow} p USING {listed} g WHERE {same} AND p.agreed"
    with _yielding(each):
        if each.shape.marks is None:
            return _apply(each, agreement, f"DELETE FROM {tombstones}")
        flagged_rows.lock(each.connection, each.shape)
        for statement in flagged_rows.statements(each.shape):
            _apply(each, agreement, statement)
        return _apply(each, agreement, f"DELETE FROM {tombstones} AND {flagged_rows.gone(each.shape)}")


@contextmanager
def _yielding(each: Holder) -> Iterator[None]:
    """A transaction that gives way to applications; what it could not do, the next cleanup does."""
    try:
        with each.connection.transaction():
            run(each.connection, "SET LOCAL deadlock_timeout = '20ms'", "SET LOCAL lock_timeout = '500ms'")
            yield
    except psycopg.Error as error:
        raise in_our_words(error, each.site) from error


def _apply(each: Holder, agreement: Agreement, statement: str) -> int:
    """Run one set statement against the listed tombstones, each only while it is still that very version."""
    shape, connection = each.shape, each.connection
    keys = [f"k{place}" for place in range(len(shape.canonical_key("p")))]
    columns = ", ".join(f"{key} text" for key in keys)
    run(
        connection,
        f"CREATE TEMPORARY TABLE agreed ({columns}, origin text, changed_at bigint, derived integer)"
        " ON COMMIT DROP",
    )
    with connection.cursor().copy("COPY pg_temp.agreed FROM STDIN") as copy:
        for key, origin, changed_at, derived in agreement.tombstones:
            copy.write_row((*key, origin, changed_at, derived))
    version = "(p.origin, p.changed_at, p.derived) = (g.origin, g.changed_at, g.derived)"
    same = f"{_listed_key(shape, 'p')} AND {version} AND p.deleted"
    written = run(connection, statement.format(shadow=shape.shadow.sql, listed="pg_temp.agreed", same=same))
    run(connection, "DROP TABLE pg_temp.agreed")
    return written
