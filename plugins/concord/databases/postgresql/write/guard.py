"""The verdict of every staged row against the version present now. Rows that need more are locked and judged again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from concord.databases.contract.ends import Job
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.before_image import MADE
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import Connection, every, one, rows
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import row_locks, stood
from concord.databases.postgresql.write.suspicious import UNSUSPECTING, Suspicion
from concord.messages.errors import WriteContended
from concord.messages.how_many import how_many
from concord.rules.initialization_rule import RESOLVER
from concord.rules.repair_rule import REPAIR

#: The verdicts that write the incoming row.
WINNING = ("apply", "inserted_for_update", "source_wins", "source_stays", "merged", "restore")
#: Both sites did the very same thing: whose version stays. Nothing is lost, and nothing logged.
SAME_THING = ("source_stays", "target_stays")

#: Keys of rows that were inserted for an update, in the log.
CONVERTED_SHOWN = 10


_ABSENT = "p.origin IS NULL OR p.origin = ''"
_STAGED, _PRESENT = (
    ("s.concord_origin", "s.concord_changed_at", "s.concord_derived"),
    ("p.origin", "p.changed_at", "p.derived"),
)
_FORWARD = f"coalesce({row_version.includes('s.concord_vector', *_PRESENT)}, false)"
_BACKWARD = f"coalesce({row_version.includes('p.vector', *_STAGED)}, false)"
_SAME = f"({', '.join(_STAGED)}) = ({', '.join(_PRESENT)})"
#: A repair overrides what versions say, and only as long as the version it was decided against is the present one.
_REPAIR = (
    f"coalesce(s.concord_resolver = {literal(REPAIR)}, false) AND s.concord_against ="
    " coalesce(p.origin, '') || '/' || coalesce(p.changed_at, 0) || '/' || coalesce(p.derived, 0)"
)
#: An initialization writes it over a row although versions do not say so: its loser belongs in the log (F33).
_FORCED = f"s.concord_verdict = 'source_wins' AND s.concord_resolver = {literal(RESOLVER)}"
#: Verdicts that leave the present version and its row as they are.
_LEFT_ALONE = frozenset(("converged", "superseded"))
_NOTHING = f"({', '.join(map(literal, sorted(_LEFT_ALONE)))})"
_DECISIONS = "('source_wins', 'target_wins', 'merged', 'held')"
_DECIDED = "s.concord_against = p.origin || '/' || p.changed_at || '/' || p.derived"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts of one table's staged rows."""

    relation: str  #: temporary table of the rows that do not simply apply, with both versions
    tally: Mapping[str, int]  #: rows per verdict, as `tally` counts them
    since: str = ""  #: the snapshot before, where only those rows are locked; empty where every row is


def hold(connection: Connection, staged: Staged, verdicts: Verdicts, job: Job) -> None:
    """Lock the rows that do not simply apply, which were judged without a lock. Raises WriteContended where one is
    another by now. Of the others the write of their versions refuses what is another one by then.

    A row that came in and changes nothing needs no lock: a version that is written over the present one has seen it
    too.
    """
    if not verdicts.tally.keys() - _LEFT_ALONE:
        return
    shape, undecided = staged.shape, f"v.verdict NOT IN {_NOTHING}"
    found = f"{verdicts.relation} v"
    named = f"EXISTS (SELECT 1 FROM {found} WHERE {shape.same_key('v', 's')} AND {undecided})"
    row_locks.lock(connection, [staged.only(named, staged.rows)], job)
    placed = "p.position = pg_current_xact_id() AND p.origin = ''"
    (changed,) = one(
        connection,
        f"SELECT count(*) FROM {found} LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 'v')}"
        f" WHERE {undecided} AND NOT coalesce({placed} OR {row_version.unchanged(verdicts.since)}, v.p_origin = '')",
    )
    if changed:
        raise WriteContended(
            f"{shape.site}: {shape.name}: {how_many(changed, 'row was', 'rows were')} edited while being judged;"
            " an application was faster"
        )


@dataclass(frozen=True, slots=True)
class Terms:
    """The grounds on which the rows of a table are judged, beside their versions."""

    damaged: str = "false"  #: what a backfill asks of two equal versions (`restoration`)
    suspicion: Suspicion = UNSUSPECTING  #: what a link looks out for
    locked: bool = True  #: else the rows that do not simply apply must be held
    converts: bool = False  #: an update that finds no row is told apart: rows went behind capture's back
    forgotten: str = (
        "false"  #: a backfill's question to a version of which nothing is known here (`restoration`)
    )


def judge(connection: Connection, staged: Staged, ordinal: int, terms: Terms = Terms()) -> Verdicts:
    """Find the rows that do not simply apply.

    A second form of `versions.conflict.classify`. Its cheap test is the same in every dialect: the incoming vector
    includes the present version, and the present one does not include the incoming. A row that it
    leaves to `retake` is judged by the first form.

    An agreed version, of a row or of a tombstone, counts as absent to one that came after it (rule
    10). Every site had it, so only one that has forgotten it makes a later version without having seen it. A conflict
    decided in Spark holds only while it is one: a third site may have told the target meanwhile that it is settled.
    Where the table is filtered, rows outside are the site's own (rule 9, `_by_scope`).
    """
    shape, name = staged.shape, f"pg_temp.verdict_{ordinal}"
    private = "coalesce(NOT s.concord_here, false)"
    verdict = _verdict(shape, terms)
    # Written twice, and taken twice of the few: of all others nothing but the verdict is computed.
    (((since,),), *_, counted) = every(
        connection,
        # A judgement without a lock holds while nobody has written its version since.
        "SELECT pg_current_snapshot()::text",
        f"""
CREATE TEMPORARY TABLE {name.partition(".")[2]} ON COMMIT DROP AS
SELECT row_number() OVER () AS n, {_keys(shape)}, s.concord_resolver AS resolver, {terms.suspicion.reason()} AS reason,
       s.concord_origin AS s_origin, s.concord_changed_at AS s_changed_at, s.concord_derived AS s_derived,
       s.concord_vector AS s_vector, s.concord_deleted AS s_deleted,
       s.concord_born OR ({private} AND ({_ABSENT})) AS s_born, {private} AS private,
       coalesce(p.origin, '') AS p_origin, coalesce(p.changed_at, 0) AS p_changed_at,
       coalesce(p.derived, 0) AS p_derived, coalesce(p.vector, '{{}}') AS p_vector,
       coalesce(p.deleted, false) AS p_deleted, coalesce(p.born, false) AS p_born,
       {_conflicts_alike(shape, terms)} AS alike, {_made(shape)},
       CASE WHEN {_DECIDED} AND s.concord_verdict IN {_DECISIONS} THEN s.concord_verdict END AS decided,
       {verdict} AS verdict
  FROM {_placed(staged)} s LEFT JOIN {shape.shadow.sql} p ON {shape.same_key("p", "s")}
 WHERE {verdict} <> 'apply'""",
        f"CREATE INDEX ON {name} ({shape.key_list})",
        f"ANALYZE {name}",
        _tally(name),
    )
    return Verdicts(name, dict(counted), "" if terms.locked else since)


def _verdict(shape: Shape, terms: Terms) -> str:
    """Of a staged row `s` beside its shadow row `p`."""
    differs = _differs(shape, terms)
    # A deleted row brings NULLs, which a row may hold as well.
    present = f"CASE WHEN s.concord_gone THEN {differs} IS NOT NULL ELSE coalesce({differs}, false) END"
    # An initialization's decision against a row without a version must be seen in the log.
    exists = f"EXISTS (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 's')})"
    applies, arrives = _applies(shape) if terms.converts else ("'apply'", "'apply'")
    includes = "concord.vector_includes(p.vector, s.concord_vector)"
    decided = f"coalesce({_DECIDED} AND s.concord_verdict IN {_DECISIONS}, false)"
    return f"""
CASE WHEN {_REPAIR} THEN s.concord_verdict
     {terms.suspicion.verdicts(known=f"({_SAME}) OR {_BACKWARD}", follows=_FORWARD, alike=_alike(shape, terms))}
     {_by_scope(shape)}
     WHEN s.concord_origin = '' THEN 'superseded'
     WHEN ({_ABSENT}) AND {terms.forgotten} THEN 'superseded'
     WHEN {_ABSENT} THEN CASE WHEN s.concord_verdict = 'source_wins' AND {exists} THEN 'source_wins'
                              WHEN s.concord_born AND {present} THEN 'retake' ELSE {arrives} END
     WHEN {_FORCED} AND {_DECIDED} THEN 'source_wins'
     WHEN p.agreed AND s.concord_changed_at > p.changed_at AND NOT {_BACKWARD} AND NOT {decided} THEN 'apply'
     WHEN {_SAME} AND {terms.damaged} THEN 'restore'
     WHEN {_SAME} THEN CASE WHEN {includes} THEN 'converged' ELSE 'unite' END
     WHEN {_FORWARD} AND NOT {_BACKWARD} THEN {applies}
     WHEN {_BACKWARD} AND NOT {_FORWARD} THEN CASE WHEN {includes} THEN 'superseded' ELSE 'unite' END
     WHEN {_conflicts_alike(shape, terms)} THEN {_whose_stays(shape)}
     WHEN {_DECIDED} AND NOT {_BACKWARD} AND s.concord_verdict IN {_DECISIONS} THEN s.concord_verdict
     ELSE 'retake' END"""


def _differs(shape: Shape, terms: Terms) -> str:
    """Is the row that stands here of other content? Only such a one was inserted twice. NULL where none stands here.

    A scalar subquery, so that no plan hashes the whole table.
    """
    differs, here = shape.differs(shape.updated), stood.beside_version(shape, locked=terms.locked)
    return f"(SELECT {differs} FROM {shape.table.sql} t WHERE {shape.same_key('t', 's')} AND {here})"


def _conflicts_alike(shape: Shape, terms: Terms) -> str:
    """Condition: neither version has seen the other, and both sites hold the same row."""
    return f"NOT ({_ABSENT}) AND NOT {_FORWARD} AND NOT {_BACKWARD} AND {_alike(shape, terms)}"


def _applies(shape: Shape) -> tuple[str, str]:
    """The verdicts of what simply applies: over a version that is known here, and where none is.

    An update finds its row, or its tombstone, unless the site was altered behind capture's back. A row that was
    inserted since the common history finds none, nor does one that enters a row filter. Deletes and inserts are not
    looked at.
    """
    found = f"(SELECT true FROM {shape.table.sql} t WHERE {shape.same_key('t', 's')})"  # scalar, as above
    live = f"NOT s.concord_gone AND {found} IS NULL"
    known = f"CASE WHEN p.deleted OR p.out_of_scope IS NOT NULL THEN 'apply' WHEN {live}"
    unknown = f"CASE WHEN s.concord_born OR {'true' if shape.where else 'false'} THEN 'apply' WHEN {live}"
    converted = "THEN 'inserted_for_update' ELSE 'apply' END"
    return f"{known} {converted}", f"{unknown} {converted}"


def _alike(shape: Shape, terms: Terms) -> str:
    """Condition: both sites have deleted the row, or it is the same at both in every column that travels, private
    ones as well. Never NULL.

    With `_whose_stays` a second form of `rules.policy.Chains.same_thing`.
    """
    differs = _differs(shape, terms)
    deleted = f"p.deleted AND p.out_of_scope IS NULL AND {differs} IS NULL"
    there = f"coalesce(NOT {differs}, false)"
    return f"NOT s.concord_out_of_scope AND CASE WHEN s.concord_gone THEN {deleted} ELSE {there} END"


def _whose_stays(shape: Shape) -> str:
    """The verdict of two that are alike: the version that Spark let win, unless a resolver may add up what both
    did."""
    if shape.policy.adds_up:
        return "'retake'"
    return (
        f"CASE WHEN NOT {_DECIDED} THEN 'retake' WHEN s.concord_verdict = 'source_wins' THEN 'source_stays'"
        " WHEN s.concord_verdict = 'target_wins' THEN 'target_stays' ELSE 'retake' END"
    )


def _made(shape: Shape) -> str:
    """The columns of a merged row and its version: a new row may come from Spark, all else is decided here."""
    given = {"made_row": "s.concord_merged"} if "merged" in shape.staged_texts else {}
    return ", ".join(f"{given.get(name, f'NULL::{kind}')} AS {name}" for name, kind in MADE.items())


def _placed(staged: Staged) -> str:
    """The staged rows, each with whether the base row here is in scope (`concord_here`; NULL: there is none)."""
    shape = staged.shape
    if not shape.where:
        return f"(SELECT s.*, NULL::boolean AS concord_here FROM {staged.typed} s)"
    here = f"(SELECT {shape.in_scope('t')} FROM {shape.table.sql} t WHERE {shape.same_key('t', 's')})"
    return f"(SELECT s.*, {here} AS concord_here FROM {staged.typed} s OFFSET 0)"


def _by_scope(shape: Shape) -> str:
    """Scope decides these before any version is looked at (rule 9).

    A row outside the filter belongs to its site alone. A row that leaves the scope elsewhere, or is deleted there,
    does not touch it. A row that enters the scope over it is decided in words. A mark of another link's filter says
    nothing about this link's rows.
    """
    filtered = (
        "WHEN s.concord_out_of_scope AND s.concord_here IS NOT TRUE OR s.concord_deleted AND NOT s.concord_here"
        " THEN 'filtered' WHEN NOT s.concord_gone AND NOT s.concord_here"
        f" AND NOT coalesce({_FORCED} AND {_DECIDED}, false) THEN 'retake'"
    )
    elsewhere = f"WHEN {shape.left_elsewhere('p')} AND NOT {_BACKWARD} AND NOT ({_SAME}) THEN 'apply'"
    return f"{filtered if shape.where else ''} {elsewhere}"


def _keys(shape: Shape) -> str:
    """The staged key under the names it has beside the verdict's own columns."""
    return ", ".join(
        f"{shape.key_in('s', column)} AS {shape.shadow.key_column(column.name)}" for column in shape.key
    )


def converted(connection: Connection, shape: Shape, verdicts: str) -> tuple[str, ...]:
    """Keys of some rows that were inserted for an update; none where they are private."""
    if shape.key_is_private:
        return ()
    key = ", ".join(shape.canonical_key("v"))
    chosen = f"WHERE verdict = 'inserted_for_update' ORDER BY 1 LIMIT {CONVERTED_SHOWN}"
    query = f"SELECT array_to_string(ARRAY[{key}], ', ') FROM {verdicts} v {chosen}"
    return tuple(found for (found,) in rows(connection, query))


def tally(connection: Connection, verdicts: str) -> dict[str, int]:
    """Rows per verdict; a united row counts as converged when its version is the present one, else superseded."""
    return dict(rows(connection, _tally(verdicts)))


def _tally(verdicts: str) -> str:
    return f"""
SELECT CASE WHEN verdict <> 'unite' THEN verdict
            WHEN (s_origin, s_changed_at, s_derived) = (p_origin, p_changed_at, p_derived) THEN 'united_converged'
            ELSE 'united_superseded' END, count(*) FROM {verdicts} GROUP BY 1"""
