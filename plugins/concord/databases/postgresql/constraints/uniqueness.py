"""Unique values used at two sites: the greater version keeps the value, the other row gives it up (F39, F40).

It gives up the column, where that may be NULL, or else its place in the table: never more than the database
demands. That is an edit of the site where the two rows meet. It gets a version of that site's own, which has seen
the loser's, and every other site follows it. Decided by `rules.unique_rule`, under lock, before any row is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.stamp import restamp
from concord.databases.postgresql.constraints import firm_rows, former, rule_identity
from concord.databases.postgresql.constraints.unique_rules import UniqueRule, read
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.facts.plans import ANY_PLAN, BY_KEY
from concord.databases.postgresql.ledger import losers as loser_log
from concord.databases.postgresql.ledger import waiting
from concord.databases.postgresql.rows import large_rows
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write.judged import Judged
from concord.jobs.link import LinkJob
from concord.rules.kinds import LAST
from concord.rules.unique_rule import Collision, Loss, Ranks, Rule, losses
from concord.versions.conflict import ConflictType
from concord.versions.row_version import RowVersion

_VERSION = ("origin", "changed_at", "derived", "vector")


@dataclass(frozen=True, slots=True)
class Lost:
    """Rows of one table that gave way, and how many entries of the ledger say so that did not stand there yet."""

    shape: Shape
    logged: int


def mend(connection: Connection, judged: Judged, job: LinkJob, *, violated: bool) -> Lost | None:
    """Let the lesser of two colliding rows give way; None where there are none.

    Without `violated`, only the rules are looked at that the database does not enforce by itself here. A row that
    arrives and gives way is changed in staging; `stamp` makes it an edit of this site once it is written.
    """
    shape = judged.staged.shape
    if shape.registers or not (violated or shape.table.deferrable_unique):
        return None
    rules = [rule for rule in read(connection, shape) if violated or not rule.immediate]
    if not rules:
        return None
    _take_stock(connection, judged)
    collisions = _collisions(connection, judged, rules)
    if not collisions:
        return None
    ranks = _ranks(connection, shape, job)
    decided = {
        rule.name: rule.decided(connection, shape, rule_identity.of_unique(rule, shape)) for rule in rules
    }
    lost = _losses(connection, shape, collisions, decided, ranks)
    _remember(connection, shape, lost, decided, ranks)
    logged = loser_log.log(connection, job, ConflictType.UNIQUENESS, _entries(shape))
    _keep_former(connection, shape)
    _give_way_here(connection, shape, lost)
    _give_way_in_staging(connection, judged, lost)
    return Lost(shape, logged)


def _losses(
    connection: Connection,
    shape: Shape,
    collisions: Sequence[Collision],
    rules: Mapping[str, Rule],
    ranks: Ranks,
) -> list[Loss]:
    """A row goes where the table's other constraints take no NULL in all that it gives up."""
    firm = set[str]()
    while True:
        lost = losses(collisions, rules, ranks, firm)
        more = firm_rows.among(connection, shape, lost, _temp(shape, "colliding"))
        if not more:
            return lost
        firm |= more


def stamp(connection: Connection, shape: Shape) -> None:
    """Every row that gave way becomes an edit of this site; after the versions that came in were written."""
    gone = f"(SELECT key, bool_or(gives_up IS NULL) AS concord_deleted FROM {_temp(shape, 'lost')} GROUP BY key) l"
    run(
        connection,
        restamp(shape.shadow, f"(SELECT {_keys(shape)}, l.concord_deleted FROM {gone} ORDER BY l.key)"),
    )


def _temp(shape: Shape, name: str) -> str:
    return f"pg_temp.{name}_{shape.table.oid}"


def _create(shape: Shape, name: str) -> str:
    return f"CREATE TEMPORARY TABLE {name}_{shape.table.oid}"


def _take_stock(connection: Connection, judged: Judged) -> None:
    """The rows that will be written, typed; and every key that will be written or deleted: its present row goes."""
    shape = judged.staged.shape
    typed = ", ".join(c.type.incoming(f"s.{c.sql}") for c in shape.columns)
    version = ", ".join(f"s.concord_{name}" for name in _VERSION)
    taken, arriving = _temp(shape, "taken"), _temp(shape, "arriving")
    run(
        connection,
        *ANY_PLAN,
        f"{_create(shape, 'taken')} ON COMMIT DROP AS SELECT {shape.keys_of('s')} FROM {judged.winners} s",
        # The columns have the table's collations: an index on an expression is evaluated under these.
        f"{_create(shape, 'arriving')} ON COMMIT DROP AS SELECT {_key_text(shape, 't')} AS concord_key,"
        f" false AS concord_large, {', '.join(f't.{c.sql}' for c in shape.columns)}, {version}"
        f" FROM {shape.table.sql} t, {judged.winners} s WITH NO DATA",
        f"INSERT INTO {arriving} SELECT {_key_text(shape, 's')}, {large_rows.is_large(shape, 's')}, {typed}, {version}"
        f" FROM {judged.winners} s"
        " WHERE NOT s.concord_gone",
        f"CREATE INDEX ON {taken} ({', '.join(column.sql for column in shape.key)})",
        f"CREATE INDEX ON {arriving} (concord_key)",
        f"ANALYZE {taken}",
        f"ANALYZE {arriving}",
        *BY_KEY,
    )


def _collisions(connection: Connection, judged: Judged, rules: Sequence[UniqueRule]) -> list[Collision]:
    """Which arriving row meets which present one. The present ones are locked: what is seen of them stays so.

    Rows outside of a filter are their site's own, and never give way to a link. Neither does a row of which a newer
    version waits, which may have given the value up. Nor does a row that is too large for the log. The site refuses
    the arriving row, and it waits as well.
    """
    shape = judged.staged.shape
    found, stays = _temp(shape, "collision"), waiting.waits(shape, "q", judged.verdicts)
    run(connection, f"{_create(shape, 'collision')} (rule text, arriving text, present text) ON COMMIT DROP")
    for rule in rules:
        taken = f"EXISTS (SELECT 1 FROM {_temp(shape, 'taken')} k WHERE {shape.same_key('k', 'q')})"
        run(
            connection,
            f"INSERT INTO {found} SELECT {literal(rule.name)}, a.concord_key, q.key"
            f" FROM (SELECT concord_key, {rule.values} FROM {_temp(shape, 'arriving')}"
            f" WHERE {rule.condition} AND NOT concord_large OFFSET 0) a"
            f" CROSS JOIN LATERAL (SELECT {_key_text(shape, 'q')} AS key FROM {shape.table.sql} q"
            f" WHERE {rule.condition} AND {rule.meets('a')} AND NOT {taken} AND {shape.in_scope('q')}"
            f" AND NOT {stays} AND NOT {large_rows.is_large(shape, 'q')} FOR UPDATE OF q) q",
        )
    run(connection, f"ANALYZE {found}")
    return [
        Collision(*each) for each in rows(connection, f"SELECT DISTINCT rule, arriving, present FROM {found}")
    ]


def _ranks(connection: Connection, shape: Shape, job: LinkJob) -> Ranks:
    """Keeps the rows that collide, images and versions as they are now, for the ledger."""
    collision, colliding = _temp(shape, "collision"), _temp(shape, "colliding")
    here = " AND ".join(f"q.{column.sql} = {_key(shape, place)}" for place, column in enumerate(shape.key))
    run(
        connection,
        f"{_create(shape, 'colliding')} ON COMMIT DROP AS"
        f" SELECT a.concord_key AS key, true AS arrives, {_canonical(shape, 'a')} AS canonical,"
        f" {shape.image('a')} AS image, {', '.join(f'a.concord_{name} AS {name}' for name in _VERSION)},"
        f" false AS deleted FROM (SELECT DISTINCT arriving FROM {collision}) l"
        f" JOIN {_temp(shape, 'arriving')} a ON a.concord_key = l.arriving UNION ALL"
        f" SELECT l.key, false, {_canonical(shape, 'q')}, {shape.image('q')}, coalesce(p.origin, ''),"
        " coalesce(p.changed_at, 0), coalesce(p.derived, 0), coalesce(p.vector, '{}'), false"
        f" FROM (SELECT DISTINCT present AS key FROM {collision}) l JOIN {shape.table.sql} q ON {here}"
        f" LEFT JOIN {shape.shadow.sql} p ON {shape.same_key('p', 'q')}",
        f"CREATE INDEX ON {colliding} (key)",
        f"ANALYZE {colliding}",
    )
    found = rows(connection, f"SELECT key, canonical, origin, changed_at, derived FROM {colliding}")
    return Ranks(
        {
            key: (RowVersion(origin, changed_at, derived, {}), tuple(canonical))
            for key, canonical, origin, changed_at, derived in found
        },
        job.priorities,
    )


def _remember(
    connection: Connection, shape: Shape, lost: Sequence[Loss], rules: Mapping[str, Rule], ranks: Ranks
) -> None:
    run(
        connection,
        f"{_create(shape, 'lost')} (key text, winner text, rule text, gives_up text, reason text, arrives boolean)"
        " ON COMMIT DROP",
    )
    into = f"COPY {_temp(shape, 'lost')} (key, winner, rule, gives_up, reason) FROM STDIN"
    with connection.cursor().copy(into.encode()) as copy:
        for loss in lost:
            rule = rules[loss.rule].identity
            copy.write_row((loss.row, loss.winner, rule, loss.gives_up, ranks.reason(loss)))
    run(
        connection,
        f"UPDATE {_temp(shape, 'lost')} l SET arrives = x.arrives FROM {_temp(shape, 'colliding')} x"
        " WHERE x.key = l.key",
        f"ANALYZE {_temp(shape, 'lost')}",
    )


def _entries(shape: Shape) -> str:
    """The losers as the ledger wants them."""
    colliding, resolver = _temp(shape, "colliding"), literal(LAST)
    return (
        f"(SELECT {literal(shape.name)} AS table_name, x.canonical AS key, {resolver} AS resolver, l.reason,"
        " l.rule, w.canonical AS against,"
        f" {loser_log.side('w', 'w')}, {loser_log.side('l', 'x')} FROM {_temp(shape, 'lost')} l"
        f" JOIN {colliding} x ON x.key = l.key JOIN {colliding} w ON w.key = l.winner)"
    )


def _keep_former(connection: Connection, shape: Shape) -> None:
    """Those here, and those that will never be here: children of either may be on their way (`foreign_keys`)."""
    referred = ", ".join(literal(name) for name in sorted(former.referred(shape))) or "NULL"
    gone = f"(l.gives_up IS NULL OR l.gives_up IN ({referred}))"
    losers = f"(SELECT {_keys(shape)}, l.key AS concord_key, l.arrives FROM {_temp(shape, 'lost')} l WHERE {gone}) l"
    here = f"{losers} JOIN {shape.table.sql} t ON NOT l.arrives AND {shape.same_key('t', 'l')}"
    coming = f"{losers} JOIN {_temp(shape, 'arriving')} t ON l.arrives AND t.concord_key = l.concord_key"
    former.keep(connection, shape, shape.table.sent, here, lost=True)
    former.keep(connection, shape, shape.columns, coming, lost=True)


def _give_way_here(connection: Connection, shape: Shape, lost: Sequence[Loss]) -> None:
    table, same = shape.table.sql, shape.same_key("t", "l")
    for column in _given_up(lost):
        chosen = f"l.gives_up = {literal(column)}" if column else "l.gives_up IS NULL"
        losers = f"(SELECT {_keys(shape)} FROM {_temp(shape, 'lost')} l WHERE NOT l.arrives AND {chosen}) l"
        if column:
            run(
                connection,
                f"UPDATE {table} t SET {shape.table.column(column).sql} = NULL FROM {losers} WHERE {same}",
            )
        else:
            run(connection, f"DELETE FROM {table} t USING {losers} WHERE {same}")


def _give_way_in_staging(connection: Connection, judged: Judged, lost: Sequence[Loss]) -> None:
    """The conflicts of its own key were logged before: there its image is still what came in."""
    shape = judged.staged.shape
    run(connection, *ANY_PLAN)
    for column in _given_up(lost):
        change = f"{shape.alias(shape.table.column(column))} = NULL" if column else "deleted = true"
        chosen = f"l.gives_up = {literal(column)}" if column else "l.gives_up IS NULL"
        same = " AND ".join(
            f"{each.type.incoming(f's.{shape.alias(each)}')} = {_key(shape, place)}"
            for place, each in enumerate(shape.key)
        )
        run(
            connection,
            f"UPDATE {judged.staged.sql} s SET {change} FROM {_temp(shape, 'lost')} l"
            f" WHERE l.arrives AND {chosen} AND {same}",
        )
    run(connection, *BY_KEY)


def _given_up(lost: Sequence[Loss]) -> list[str | None]:
    """Each column that some row gives up, once; None for rows that go."""
    return sorted({loss.gives_up for loss in lost}, key=str)


def _key(shape: Shape, place: int) -> str:
    """One column of the key that `l.key` spells."""
    return f"(l.key::jsonb ->> {place})::{shape.key[place].type.sql}"


def _keys(shape: Shape) -> str:
    return ", ".join(f"{_key(shape, place)} AS {column.sql}" for place, column in enumerate(shape.key))


def _key_text(shape: Shape, row: str) -> str:
    texts = ", ".join(column.type.exact(f"{row}.{column.sql}") for column in shape.key)
    return f"to_jsonb(ARRAY[{texts}]::text[])::text"


def _canonical(shape: Shape, row: str) -> str:
    return f"to_jsonb(ARRAY[{', '.join(shape.canonical_key(row))}]::text[])"
