"""A link looks out for two things in every row that it writes: stamps from the future, rows that come back without
end.

Both are judged beside the versions, where they cost a comparison, and counted where the version is written anyway.

A row rebounds when a link writes over a version that was made here since the link wrote last. The incoming version
must have seen it. A program here answered the last write, and a program there answered the answer. Users do that
too, now and then; a program that changes what arrives does it in every run.

An edit at both sites before every run
looks the same from here, where the source had decided. Its conflict log knows these two versions
(`transmission.oscillation`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.contract.rows import Rebounding
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.sequences import LARGEST
from concord.databases.postgresql.rows.shape import Shape
from concord.jobs.link import LinkJob
from concord.messages.errors import RowsOscillate
from concord.rules.brake import Kind
from concord.versions.row_version import LATEST, RowVersion

#: Runs within which a row must come back to have come back run after run: an answer may miss the next run.
RUNS = 3

#: Rows of a table that are looked at more closely when some rebound too often.
LOOKED_AT = 1000

#: The clock here, which one statement asks once.
CLOCK = f"(SELECT {row_version.NOW})"


def ahead(stamp: str, vector: str, skew: float) -> str:
    """Condition: the stamp is further ahead than the clock here, and than all that the row's vector has seen.

    A second form of `versions.row_version.from_the_future`, of a version that is not known here.
    """
    return f"({stamp} > {_by_the_clock(skew)} AND {stamp} > {_by_the_row(vector, skew)})"


def beyond(incoming: str, vector: str, skew: float) -> str:
    """The same of an incoming vector: it has such an entry, or one that is none.

    The present vector would take such an entry over, and every site after it.
    """
    by_the_clock = row_version.beyond(incoming, _by_the_clock(skew))
    return f"({by_the_clock} AND {row_version.beyond(incoming, _by_the_row(vector, skew))})"


def _by_the_clock(skew: float) -> str:
    return f"{CLOCK} + {_allowed(skew)}"


def _by_the_row(vector: str, skew: float) -> str:
    return f"coalesce(concord.vector_newest({vector}), 0) + {_allowed(skew)}"


def _allowed(skew: float) -> int:
    return int(skew * 1_000_000)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The suspicious rows of one table in one transmission; by default none is suspicious."""

    skew: float | None = None  #: seconds that a stamp may be ahead of the target's clock
    rebounds: int | None = None  #: of one row, that stop its table
    released: bool = False  #: they pass this time
    session: str | None = None  #: the transmission, where it moves positions
    table: str = ""
    site: str = ""  #: where the rows are written

    @property
    def _future(self) -> str:
        """Condition; the row's own history is looked at last."""
        return "false" if self.skew is None else ahead("s.concord_changed_at", "p.vector", self.skew)

    @property
    def _no_version(self) -> str:
        """Condition: the version is none, or has seen one from the future. It is not united with the present one
        either."""
        if self.skew is None:
            return "false"
        dot = row_version.no_dot("s.concord_origin", "s.concord_changed_at", "s.concord_derived")
        return f"coalesce({dot} OR {beyond('s.concord_vector', 'p.vector', self.skew)}, true)"

    @property
    def _none_here(self) -> str:
        """Condition: the version that is present is none. Python and SQL would judge it differently."""
        if self.skew is None:
            return "false"
        return f"(p.origin IS NOT NULL AND {row_version.beyond('p.vector', str(LATEST))})"

    def verdicts(self, *, known: str, follows: str, alike: str) -> str:
        """This is decided before any version is: a stamp from the future is not adopted (F13, F14).

        `known`: the present version includes the staged one; `follows`: the other way about; `alike`: the rows are
        the same. Two sites that do the same thing before every run rewrite nothing, and no conflict says so.
        """
        news = f"NOT coalesce({known}, false)"
        future = (
            f"WHEN {self._future} AND {news} OR {self._no_version} OR {self._none_here} THEN 'quarantined'"
        )
        if self.rebounds is None or self.released or self.session is None:
            return future
        # Not NULL: of rows without a version nothing that follows need be computed.
        latched = f"coalesce(p.rebounds >= {self.rebounds}, false) AND p.rebounded_in IN {self._recent}"
        return f"{future} WHEN {latched} AND {follows} AND {news} AND NOT ({alike}) THEN 'oscillates'"

    @property
    def _recent(self) -> str:
        """The newest sessions of the site's links that carried the table: time stands still while it is stopped."""
        stopped = f"coalesce(h.value -> 'differing' ? {literal(self.table)}, false)"
        return (
            "(SELECT e.id FROM concord.link_state l CROSS JOIN LATERAL (SELECT h.value ->> 'id' AS id"
            f" FROM jsonb_array_elements(l.history) WITH ORDINALITY h (value, n) WHERE NOT {stopped}"
            f" ORDER BY h.n LIMIT {RUNS}) e)"
        )

    def reason(self) -> str:
        """Why a staged row `s` was decided as it was."""
        stamp = "to_char(to_timestamp(s.concord_changed_at / 1000000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"
        ahead = f"more than max_clock_skew ({self.skew or 0:g} s) ahead of the clock here"
        said = f"'stamped ' || {stamp} || ' UTC, {ahead}'"
        none = literal(f"its version has seen a stamp {ahead}, or holds numbers that are no version's")
        here = literal(
            "the version of the row here holds numbers that are no version's; stamp it anew: python -m concord restamp"
            f" {self.site}"
        )
        return (
            f"CASE WHEN {self._future} THEN {said} WHEN {self._no_version} THEN {none}"
            f" WHEN {self._none_here} THEN {here} ELSE s.concord_reason END"
        )

    def counting(self) -> str:
        """Assignments to the shadow row `p`, where `n` comes in: one more rebound, the first of a new series, or
        none.

        A repair and a backfill end the series; after an approval it begins anew.
        """
        if self.session is None:
            return "rebounds = NULL, rebounded_in = NULL"
        again = (
            "n.received_from IS NOT NULL AND p.received_from IS NULL AND n.origin <> p.origin"
            " AND p.origin = (SELECT origin FROM concord.site)"
        )
        going_on = f"p.rebounded_in IN {self._recent} AND p.rebounds < {self.rebounds or LARGEST['integer']}"
        return (
            f"rebounds = CASE WHEN {again} THEN CASE WHEN {going_on} THEN p.rebounds + 1 ELSE 1 END END,"
            f" rebounded_in = CASE WHEN {again} THEN {literal(self.session)} END"
        )


UNSUSPECTING = Suspicion()


def suspicion_of(job: LinkJob, table: str, session: str | None, *, released: bool) -> Suspicion:
    """The link's limits for one of its tables. A person's approval lets an oscillation pass once."""
    limit = next(each.brakes.oscillation for each in job.tables if each.name == table)
    approved = any((each.kind, each.table) == (Kind.OSCILLATION, table) for each in job.approvals)
    return Suspicion(job.target.max_clock_skew, limit, released or approved, session, table, job.target.name)


def refuse_oscillating(connection: Connection, verdicts: Mapping[str, tuple[Shape, str]], site: str) -> None:
    """Raises RowsOscillate, with the rows of all tables that rebound too often, and both versions of each."""
    found = {name: _rebounding(connection, *of_table) for name, of_table in verdicts.items()}
    rebounding = {name: listed for name, listed in found.items() if listed}
    if rebounding:
        raise RowsOscillate(f"{site}: rows of {', '.join(rebounding)} oscillate", rebounding=rebounding)


def _rebounding(connection: Connection, shape: Shape, verdicts: str) -> list[Rebounding]:
    versions = (f"v.{side}_{part}" for side in "sp" for part in ("origin", "changed_at", "derived"))
    return [
        Rebounding(
            tuple(key), RowVersion(s_origin, s_at, s_derived, {}), RowVersion(p_origin, p_at, p_derived, {})
        )
        for key, s_origin, s_at, s_derived, p_origin, p_at, p_derived in rows(
            connection,
            f"SELECT ARRAY[{', '.join(shape.canonical_key('v'))}], {', '.join(versions)} FROM {verdicts} v"
            f" WHERE verdict = 'oscillates' ORDER BY 1 LIMIT {LOOKED_AT}",
        )
    ]


def without_conflict(connection: Connection, table: str, found: Sequence[Rebounding]) -> list[Rebounding]:
    """Those of which the site's log has no conflict between the two versions.

    Found by the versions (the index is `conflict_loser`), not by the id: where the key is private, id and key stand
    there as keyed hashes. Two stamps in microseconds are enough to tell a row by.
    """
    stamps = {str(version.changed_at) for row in found for version in (row.arriving, row.present)}
    listed = ", ".join(map(literal, sorted(stamps)))
    met = {
        (frozenset(map(_dot, versions)), None if key is None else tuple(key))
        for *versions, key in rows(
            connection,
            "SELECT winner_version, loser_version, CASE WHEN NOT withheld ? 'key' THEN key END FROM concord.conflict"
            f" WHERE table_name = {literal(table)} AND loser_version ->> 'changed_at' IN ({listed})",
        )
    }
    return [row for row in found if met.isdisjoint({(row.dots, row.key), (row.dots, None)})]


def _dot(version: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(version.get(part) for part in ("origin", "changed_at", "derived"))
