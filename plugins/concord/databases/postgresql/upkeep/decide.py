"""A person's decision about a waiting row becomes a new local version that has seen both; every site follows.

One small transaction of the applier's. It holds only while both rows are as the person saw them. The row that gives
way stands in the conflict log where neither version had seen the other. Else the new version is an edit like any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import psycopg
from psycopg.rows import class_row

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture import stamp
from concord.databases.postgresql.constraints import decided_rows
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import Connection, in_transaction, rows, run
from concord.databases.postgresql.facts.refusal import is_refusal, told
from concord.databases.postgresql.ledger import waiting, waiting_table
from concord.databases.postgresql.rows import large_rows, marked_edits, stage
from concord.databases.postgresql.rows.repetition import COLLISIONS, Commit, repeat
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.sites.end import worded
from concord.databases.postgresql.sites.ends import Target
from concord.databases.postgresql.transaction import one_transaction
from concord.databases.postgresql.write import conflict_log, guard, merge, retake, row_locks, suspicious
from concord.databases.postgresql.write.judged import Judged
from concord.jobs import stored
from concord.jobs.waiting import PERSON, Choice, Image, WaitingRow
from concord.messages.errors import DecisionRefused

#: Condition on a waiting row: a person is asked about it.
_HELD = "AND w.kind = 'held'"

#: Verdicts by which the present version has seen the waiting one already.
_SETTLED = ("superseded", "converged", "unite")


class Desk(Target):
    """The target of a link, for as long as its waiting rows are looked at or decided."""

    @worded
    def entries(self, limit: int, *, held: bool = False) -> list[WaitingRow]:
        """The rows that wait for the link, oldest first, with both rows as they are now; only the `held` ones where
        that is asked."""
        oldest = f"{_HELD if held else ''} ORDER BY w.since, w.key LIMIT {limit}"
        found: list[WaitingRow] = []
        for shape in self._shapes():
            found += _read(self.connection, self.job.link, shape, oldest)
        return sorted(found, key=lambda each: (each.since, each.table_name, list(each.key)))[:limit]

    def _shapes(self) -> Sequence[Shape]:
        """Of the tables of which rows wait."""
        named = waiting_table.counted(self.connection, self.job.link)
        tables = [table for table in self.job.tables if table.name in named]
        return list(self.survey(tables).shapes.values()) if tables else []

    def _waiting_shape(self, row: WaitingRow) -> Shape:
        for shape in self._shapes():
            if shape.name == row.table_name:
                return shape
        raise DecisionRefused(f"{row.id}: it no longer waits; list again")

    @worded
    def decide(self, row: WaitingRow, choice: Choice, person: str) -> None:
        """Raises DecisionRefused when either row is another by now, and whatever a write may raise."""
        if choice == "source" and not row.held:
            self._refuse_future_source(row)
        image, shape = row.chosen(choice), self._waiting_shape(row)
        _refuse_unfit(shape, row, image)
        _refuse_moved(shape, row, image)
        said = choice if isinstance(choice, str) else "a row of their own"
        reason = f"{person} decided: {said}"
        verdict = "source_wins" if choice == "source" else "target_wins"

        def attempt(connection: Connection, *, violations: int) -> None:
            with in_transaction(connection, *one_transaction.SETTINGS):
                judged = self._judged(connection, shape, row)
                self._log(connection, judged, verdict, reason, alike=row.alike)
                self._write(connection, judged, row, image)

        commit = Commit(self.at_hand, self.job.link, None, self.access.name, bool(shape.private))
        repeat(commit, attempt)

    def _judged(self, connection: Connection, shape: Shape, row: WaitingRow) -> Judged:
        """The waiting row, staged again by its own version, and judged under lock. Raises DecisionRefused."""
        place = Staged(shape, stage.staging_name(self.job.transmission, 0))
        try:
            staged = waiting.bring_one(connection, self.job.link, place, row.key)
            row_locks.lock(connection, [staged], self.job)
        except psycopg.Error as error:
            raise _of_other_types(row, shape, error) from None
        now = _beside_present(connection, self.job.link, shape, f"AND w.key = {waiting.json_of(row.key)}")
        if [each.id for each in now] != [row.id]:
            raise DecisionRefused(
                f"{row.id}: one of the rows was changed meanwhile; list again and decide about what is there now"
            )
        verdicts = guard.judge(connection, staged, 0).relation
        return Judged(staged, verdicts, 1, self.job.source.name, self.access.name)

    def _log(self, connection: Connection, judged: Judged, verdict: str, reason: str, *, alike: bool) -> None:
        """Whoever gives way without having been seen stands in the log, unless both sites did the very same thing."""
        found = rows(connection, f"SELECT verdict FROM {judged.verdicts}")
        if found and found[0][0] in _SETTLED:
            raise DecisionRefused("it was settled meanwhile, by another link; the next run lets the entry go")
        staged, job = judged.staged, self.job
        chains = staged.shape.policy.bound(job.priorities, staged.shape.forms, job.ends)
        same_thing = retake.same_thing(connection, staged, judged.verdicts, chains, alike=alike)
        run(
            connection,
            f"UPDATE {judged.verdicts} SET verdict = {literal(verdict)}, resolver = {literal(PERSON)},"
            f" reason = {literal(reason)}",
        )
        if not same_thing:
            conflict_log.log_conflicts(connection, judged, job.synchronization, job.link, job.transmission)

    def _write(self, connection: Connection, judged: Judged, row: WaitingRow, image: Image | None) -> None:
        staged, decided = judged.staged, replace(judged, exceptional=0)
        run(connection, _restaged(staged, image))
        self._refuse_future(connection, staged, row)
        decided_rows.write_base(connection, self.job, decided)
        merge.write_shadow(connection, decided, expected=1)
        marked_edits.remember_written(connection, staged.shape, decided.winners)
        waiting.forget(connection, self.job.link, [staged.shape])
        run(connection, f"DROP TABLE {staged.sql}")

    def _refuse_future(self, connection: Connection, staged: Staged, row: WaitingRow) -> None:
        """A version that has seen a stamp from the future is stamped later still, and takes the fault to every site.
        Raises DecisionRefused."""
        skew = self.access.max_clock_skew
        nothing = literal("{}")
        incoming = waiting.json_of(row.incoming_version.get("vector"))
        ((future, at_source),) = rows(
            connection,
            f"SELECT {suspicious.beyond('vector::jsonb', nothing, skew)},"
            f" {suspicious.beyond(incoming, nothing, skew)}"
            f" FROM {staged.sql}",
        )
        if future:
            raise self._from_future(row, self.job.source.name if at_source else self.access.name)

    def _refuse_future_source(self, row: WaitingRow) -> None:
        """Nothing at this site refuses such a row, so that nothing can be mended here. Raises DecisionRefused."""
        incoming = waiting.json_of(row.incoming_version.get("vector"))
        ahead = suspicious.beyond(incoming, literal("{}"), self.access.max_clock_skew)
        if rows(self.at_hand(), f"SELECT FROM (SELECT {ahead} AS future) s WHERE future"):
            raise self._from_future(row, self.job.source.name)

    def _from_future(self, row: WaitingRow, holder: str) -> DecisionRefused:
        return DecisionRefused(
            f"{row.id}: a version of it at {holder} is stamped more than max_clock_skew"
            f" ({self.access.max_clock_skew:g} s) ahead of the clock of {self.access.name}, and a decision would be"
            f" stamped later still. Stamp it anew where it was made (python -m concord restamp {holder}), and let the"
            " next run bring it"
        )

    @worded
    def retry(self, row: WaitingRow) -> None:
        """Let the next run try it among the first, although its table was altered since.

        Raises DecisionRefused where the row no longer fits.
        """
        with self.control() as connection:
            shape = self._waiting_shape(row)
            try:
                fits = waiting.hurry(connection, self.job.link, shape, row.key)
            except psycopg.Error as error:
                raise _of_other_types(row, shape, error) from None
            if not fits:
                raise DecisionRefused(
                    f"{row.id}: {row.table_name} at {row.site} had other columns then, or such in which it reads"
                    " otherwise; edit the row at its source"
                )


def _of_other_types(row: WaitingRow, shape: Shape, error: psycopg.Error) -> Exception:
    """The error to raise: a refusal, but for a lost race, is about a value that is none of its column any more."""
    if not is_refusal(error) or isinstance(error, COLLISIONS):
        return error
    why = told(error, private=bool(shape.private))
    return DecisionRefused(
        f"{row.id}: {row.table_name} at {row.site} had columns of other types then: {why}; edit the row at its source"
    )


def _read(connection: Connection, link: str, shape: Shape, rest: str) -> list[WaitingRow]:
    """Waiting rows of one table, each beside what is present: one after the other where a key is no value any
    more."""
    try:
        with connection.transaction():
            return _beside_present(connection, link, shape, rest)
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
    query = f"SELECT w.key FROM concord.waiting w WHERE {waiting.of(link, shape)} {rest}"
    return [each for (key,) in rows(connection, query) for each in _read_one(connection, link, shape, key)]


def _read_one(connection: Connection, link: str, shape: Shape, key: Sequence[str]) -> list[WaitingRow]:
    """Beside nothing, where its key is no value of its columns any more: no decision about it is taken."""
    this = f"AND w.key = {waiting.json_of(key)}"
    try:
        with connection.transaction():
            return _beside_present(connection, link, shape, this)
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
    return _beside_present(connection, link, shape, this, keyed=False)


def _beside_present(
    connection: Connection, link: str, shape: Shape, rest: str, *, keyed: bool = True
) -> list[WaitingRow]:
    there = "w.version ->> 'deleted' <> 'true' AND w.version ->> 'out_of_scope' <> 'true'"
    fields = ("origin", "changed_at", "derived", "vector", "deleted")
    present = ", ".join(f"'{name}', p.{name}" for name in fields)
    query = f"""
SELECT {literal(shape.site)} AS site, w.synchronization, w.link, w.table_name, w.key, w.kind, w.reason, w.conflict_type,
       w.since, w.tries, w.version AS incoming_version, CASE WHEN {there} THEN w.row_image END AS incoming_row,
       CASE WHEN p.origin <> '' THEN jsonb_build_object({present}) END AS present_version,
       CASE WHEN t.{shape.key[0].sql} IS NOT NULL THEN {large_rows.image_or_key(shape, "t")} END AS present_row
  FROM concord.waiting w LEFT JOIN {shape.shadow.sql} p ON {waiting.same_key(shape, "p") if keyed else "false"}
  LEFT JOIN {shape.table.sql} t ON {waiting.same_key(shape, "t") if keyed else "false"}
 WHERE {waiting.of(link, shape)} {rest}"""
    found = connection.cursor(row_factory=class_row(WaitingRow)).execute(query.encode()).fetchall()
    return [_as_stored(each, shape) for each in found]


def _as_stored(row: WaitingRow, shape: Shape) -> WaitingRow:
    """Another site may have stored anything in it."""
    return replace(
        row,
        key=[part or "" for part in stored.key_of(row.key)],
        incoming_version=stored.version_of(row.incoming_version),
        incoming_row=stored.image_of(row.incoming_row),
        present_version=row.present_version and stored.version_of(row.present_version),
        private=shape.private,
        key_is_private=shape.key_is_private,
    )


def _refuse_unfit(shape: Shape, row: WaitingRow, image: Image | None) -> None:
    if shape.marks is not None:
        raise DecisionRefused(
            f"{row.id}: the changes of {row.table_name} are found by marks of the application; edit the row there"
        )
    if shape.where:
        raise DecisionRefused(f"{row.id}: {row.table_name} has a row filter; edit the row at either site")
    for each in (image, row.incoming_row, row.present_row):  # the one that gives way is logged whole
        if each is not None and set(each) != set(shape.names):
            unlike = ", ".join(sorted(set(each) ^ set(shape.names)))
            raise DecisionRefused(
                f"{row.id}: {row.table_name} at {row.site} had other columns then, or the row is too large to be logged"
                f" ({unlike}); edit it at its source"
            )


def _refuse_moved(shape: Shape, row: WaitingRow, image: Image | None) -> None:
    """The key says which row it is; one that is written as either site has it is no other."""
    sides = [each for each in (row.incoming_row, row.present_row) if each is not None]
    for name in shape.key_names:
        if image is not None and image[name] not in [each[name] for each in sides]:
            raise DecisionRefused(
                f"{row.id}: {name} belongs to the key, which stays {', '.join(row.key)}; leave it out of the columns"
            )


def _restaged(staged: Staged, image: Image | None) -> str:
    """The decided row under a version of this site that includes both, stamped as capture would stamp it."""
    shape = staged.shape
    given = (
        {shape.alias(c): f"{literal(image[c.name])}::{c.type.staging}" for c in shape.rest} if image else {}
    )
    given |= {
        "origin": "d.origin",
        "changed_at": "d.at",
        "derived": "0",
        "vector": "(d.vector || " + stamp.vector("d.origin", "d.at") + ")::text",
        "deleted": literal(image is None),
        "resolver": literal(PERSON),
    }
    return f"""
UPDATE {staged.sql} s SET {", ".join(f"{name} = {value}" for name, value in given.items())}
  FROM (SELECT c.origin, u.vector, {row_version.next_stamp("u.vector", "c.stamp_floor")} AS at
          FROM concord.site c CROSS JOIN (
               SELECT concord.vector_unite(x.concord_vector, coalesce(p.vector, '{{}}')) AS vector
                 FROM {staged.typed} x LEFT JOIN {shape.shadow.sql} p ON {shape.same_key("p", "x")}) u) d"""
