"""The end of an entry that met conflicts: who lost, and what the subscriber is to take back (S3-17, S3-18, S3-28)."""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.constraints.unique_rules import UniqueRule
from concord.databases.postgresql.queued import compensation, taken_values
from concord.databases.postgresql.queued.versioned_rows import VersionedRows
from concord.databases.postgresql.write.conflict_id import conflict_id
from concord.jobs.link import Direction
from concord.jobs.replication import ReplicationJob

#: A key that nobody had ever written has no version: its site is the one where it was found.
_NOBODY = (
    "jsonb_build_object('origin', '', 'changed_at', 0, 'derived', 0, 'vector', '{}'::jsonb, 'deleted',"
    " c.stands IS NULL)"
)
_WITH = "its transaction changed another row that conflicts"
_MOVED = "its key was changed, and the row conflicts under its other key"
_ALONE = "both sites changed the row"
#: Rules that a transaction breaks as a whole, as the conflict log names them, and why its rows fall.
FOREIGN_KEY, UNIQUENESS = "foreign_key", "uniqueness"
_RULES = {
    FOREIGN_KEY: "its transaction refers to a row that the publisher has deleted, or deletes one that it refers to",
    UNIQUENESS: "its transaction gives a row a value that another row of the publisher has",
}


class Contested:
    """The keys of one table that an entry contests: a temporary table, empty between entries."""

    def __init__(self, rows: VersionedRows, job: ReplicationJob, rules: Sequence[UniqueRule]) -> None:
        self.rows, self.job, self._rules = rows, job, rules
        self.name = f"pg_temp.concord_contested_{rows.table.place}"
        self._key = [f"c.k{at}" for at in range(len(rows.of.keys))]

    @property
    def created(self) -> str:
        """`present` and `here` are the version and the row that it met, `after` and `incoming` those that came."""
        names = [f"k{at}" for at in range(len(self._key))]
        columns = [f"{name} {column.type.sql}" for name, column in zip(names, self.rows.of.keys, strict=True)]
        return (
            f"CREATE TEMPORARY TABLE concord_contested_{self.rows.table.place} ({', '.join(columns)},"
            " conflicts boolean NOT NULL DEFAULT false, inserted boolean NOT NULL DEFAULT false, present jsonb,"
            f" here jsonb, after jsonb, incoming jsonb, PRIMARY KEY ({', '.join(names)}))"
        )

    def has(self, key: list[str]) -> str:
        pairs = zip(self._key, key, strict=True)
        return (
            f"EXISTS (SELECT FROM {self.name} c WHERE {' AND '.join(f'{k} = {value}' for k, value in pairs)})"
        )

    def put(self, key: list[str], **values: str) -> str:
        """Remember more of a key."""
        names = ", ".join(f"k{at}" for at in range(len(key)))
        changed = ", ".join(f"{name} = excluded.{name}" for name in values)
        return (
            f"INSERT INTO {self.name} ({names}, {', '.join(values)}) VALUES ({', '.join([*key, *values.values()])})"
            f" ON CONFLICT ({names}) DO UPDATE SET {changed}"
        )

    @property
    def met(self) -> str:
        """Remember the key whose version was judged, and what it met, which may be overwritten."""
        rows, key = self.rows, self.rows.key
        version = f"(SELECT {rows.present()} FROM {rows.shadow} s WHERE {rows.version_at(key)})"
        row = f"(SELECT {rows.row_image()} FROM {rows.sql} t WHERE {rows.at(key)})"
        inserted = f"NOT {rows.was_there}"
        return self.put(key, conflicts="true", inserted=inserted, present=version, here=row)

    @property
    def settled(self) -> str:
        """At the entry's end."""
        if self.job.direction is Direction.FORWARD:
            return f"IF fallen THEN {self._asked}; END IF; DELETE FROM {self.name};"
        rejected = f"{self._held} {self._logged(rejects=True)} {self._compensated}; {self._let_go}"
        if self.job.replication.rejects:
            return f"{rejected} DELETE FROM {self.name};"
        return (
            f"IF fallen THEN {rejected} ELSE {self._logged(rejects=False)} END IF; DELETE FROM {self.name};"
        )

    @property
    def _asked(self) -> str:
        """The subscriber asks for each row that it has not written, but those that the publisher will judge anyway."""
        rows = self.rows
        version = f"SELECT {rows.present()} FROM {rows.shadow} s WHERE {rows.version_at(self._key)}"
        asked = f"{literal(rows.table.name)}, {self._key_json}, coalesce(({version}), '{{}}')"
        return compensation.asked(self.job, f"SELECT {asked} FROM {self.name} c WHERE NOT c.conflicts")

    @property
    def _held(self) -> str:
        """A key that the publisher has never known has no row that could be locked: nobody's version stands for it.

        So no user inserts it unseen until the compensation is written, which says that it is absent.
        """
        fields = {
            "origin": "''",
            "changed_at": "0",
            "derived": "0",
            "vector": "'{}'",
            "deleted": "true",
            "born": "false",
            "position": "pg_current_xact_id()",
        }
        names = ", ".join([*(column.sql for column in self.rows.versions.key_columns), *fields])
        return (
            f"INSERT INTO {self.rows.shadow} ({names}) SELECT {', '.join([*self._key, *fields.values()])}"
            f" FROM {self.name} c WHERE c.after IS NOT NULL ON CONFLICT DO NOTHING;"
        )

    @property
    def _let_go(self) -> str:
        rows = self.rows
        return f"DELETE FROM {rows.shadow} s USING {self.name} c WHERE {rows.version_at(self._key)} AND s.origin = '';"

    def _found(self, *, rejects: bool) -> str:
        """Each contested key with both sides. Where the publisher's row stands, that is what is there now."""
        rows = self.rows
        there = f"t.{rows.of.keys[0].sql} IS NOT NULL"
        version, stands = rows.present(), f"CASE WHEN {there} THEN {rows.row_image()} END"
        if not rejects:  # it is overwritten
            version = f"CASE WHEN c.conflicts THEN c.present ELSE {version} END"
            stands = f"CASE WHEN c.conflicts THEN c.here ELSE {stands} END"
        met = (
            f"SELECT c.*, {version} AS version, {stands} AS stands"
            f" FROM {self.name} c LEFT JOIN {rows.shadow} s ON {rows.version_at(self._key)} AND s.origin <> ''"
            f" LEFT JOIN {rows.sql} t ON {rows.at(self._key)} WHERE c.after IS NOT NULL"
        )
        return f"SELECT c.*, coalesce(c.version, {_NOBODY}) AS standing FROM ({met}) c"

    def _logged(self, *, rejects: bool) -> str:
        job, place = self.job, self.rows.table.place
        ours, theirs = (
            (literal(job.target.name), "standing", "stands"),
            (literal(job.source.name), "after", "incoming"),
        )
        winner, loser = (ours, theirs) if rejects else (theirs, ours)
        won = [f"c.{each}" for each in winner[1:]]
        met = f"({self._found(rejects=rejects)}) c"
        if rejects and self._rules:
            met += self._other
            won = [f"coalesce(o.version, {won[0]})", f"coalesce(o.image, {won[1]})"]
        broken = "".join(f" WHEN {literal(rule)} THEN {literal(why)}" for rule, why in _RULES.items())
        alone = _WITH if job.replication.rejects_whole else _MOVED
        others = f"CASE broken_rule{broken} ELSE {literal(alone)} END"
        reason = f"CASE WHEN c.conflicts THEN {literal(_ALONE)} ELSE {others} END"
        return (
            "INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver,"
            " reason, winner_site, loser_site, winner_version, loser_version, winner_row, loser_row)"
            f" SELECT {self._id}, {literal(job.synchronization)}, {literal(job.link)}, {literal(job.transmission)},"
            f" {literal(self.rows.table.name)}, {self._key_json}, {_TYPE},"
            f" coalesce(broken_rule, {literal(job.replication.conflict.policy)}),"
            f" {reason}, {winner[0]}, {loser[0]}, {won[0]}, c.{loser[1]}, {won[1]}, c.{loser[2]}"
            f" FROM {met} ON CONFLICT (id) DO NOTHING; GET DIAGNOSTICS n = ROW_COUNT;"
            f" conflicts_{place} := conflicts_{place} + n;"
        )

    @property
    def _other(self) -> str:
        """Of a row `c` that was to have another row's value: that row, unless it was to give the value up."""
        falls = self.has([f"q.{column.sql}" for column in self.rows.of.keys])
        among = f"broken_rule = {literal(UNIQUENESS)} AND NOT {falls}"
        found = taken_values.winner(self.rows, self._rules, "c.incoming", among)
        return f" LEFT JOIN LATERAL ({found}) o ON NOT c.conflicts AND c.incoming IS NOT NULL"

    @property
    def _compensated(self) -> str:
        rows, job = self.rows, self.job
        told = f"(SELECT to_jsonb(k) FROM concord.conflict k WHERE k.id = {self._id})"
        conflict = told if job.replication.conflict.report_to_subscriber else "NULL"
        return (
            f"INSERT INTO {compensation.SQL} (replication, table_name, key, rejected, image, version, conflict)"
            f" SELECT {literal(job.synchronization)}, {literal(rows.table.name)}, {self._key_json}, c.after, c.stands,"
            f" c.version, {conflict} FROM ({self._found(rejects=True)}) c"
        )

    @property
    def _key_texts(self) -> list[str]:
        return [column.type.exact(k) for column, k in zip(self.rows.of.keys, self._key, strict=True)]

    @property
    def _key_json(self) -> str:
        return f"to_jsonb(ARRAY[{', '.join(self._key_texts)}])"

    @property
    def _id(self) -> str:
        one, other = _dot("c.standing"), _dot("c.after")
        return conflict_id(self.rows.table.name, ", ".join(self._key_texts), one, other)


def _dot(version: str) -> tuple[str, str, str]:
    return (
        f"({version} ->> 'origin')",
        f"({version} ->> 'changed_at')::bigint",
        f"({version} ->> 'derived')::integer",
    )


#: Of a row `c`, from the subscriber's side, as `versions.conflict.conflict_type` names it.
_TYPE = (
    "CASE WHEN fallen AND NOT c.conflicts THEN broken_rule"
    " WHEN (c.after -> 'deleted')::boolean AND (c.standing -> 'deleted')::boolean THEN 'delete_delete'"
    " WHEN (c.after -> 'deleted')::boolean THEN 'delete_update'"
    " WHEN (c.standing -> 'deleted')::boolean THEN 'update_delete'"
    " WHEN c.inserted THEN 'insert_insert' ELSE 'update_update' END"
)
