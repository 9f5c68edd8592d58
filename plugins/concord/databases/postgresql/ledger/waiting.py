"""Rows that are not written: they wait at the target, with their image and version, and the link goes on (rule 11).

`quarantined`: the site would not take the row; every run tries it again. `held`: a person decides. An entry leaves
when the version that is present includes it: because it was written, or because something newer was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.facts.refusal import is_refusal
from concord.databases.postgresql.facts.sequences import LARGEST
from concord.databases.postgresql.rows import large_rows, stage
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import suspicious
from concord.databases.postgresql.write.conflict_log import conflict_type, version_object
from concord.databases.postgresql.write.judged import Judged
from concord.jobs.link import LinkJob

#: Verdicts that leave the row as it is, and the incoming one waiting.
KINDS = ("held", "quarantined")

#: How many waiting rows one run tries again, those that were tried longest ago first.
TRIED_AGAIN = 200

_VERSION = ("origin", "changed_at", "derived", "vector", "deleted", "born", "out_of_scope")

#: The version of a waiting row `w`.
_OF_JSON = ("(w.version ->> 'origin')", "w.version -> 'changed_at'", "w.version -> 'derived'")

#: Condition: the shadow row `p` includes the waiting version `w`.
_INCLUDED = row_version.includes("p.vector", *_OF_JSON)


def bring(connection: Connection, link: str, staged: Staged, skew: float) -> Staged:
    """Put the quarantined rows of the table beside the staged ones; a newer version that was staged supersedes them.

    One whose stamp still lies in the future stays where it is, untouched (rule 12): it would be refused once more.

    They go by their own versions, and are judged like what has just come in. A row whose table was altered since
    stays where it is: its image has other columns. Whatever an image holds is staged: the write finds what cannot be.
    """
    if staged.rows:
        staged = stage.as_text(connection, staged)
    else:
        stage.create(connection, staged)
    shape = staged.shape
    key = ", ".join(key_of(shape))
    newest = f"""
(SELECT DISTINCT ON ({key}) w.* FROM concord.waiting w
  WHERE {of(link, shape)} AND w.kind = 'quarantined' AND w.structure = {literal(shape.table.structure)}
  ORDER BY {key}, (w.version ->> 'changed_at')::bigint DESC OFFSET 0) w
 LEFT JOIN {shape.shadow.sql} p ON {same_key(shape, "p")}
 WHERE {_not_staged(staged)} AND NOT {suspicious.beyond("w.version -> 'vector'", "p.vector", skew)}
 ORDER BY w.tried_at, w.key LIMIT {TRIED_AGAIN}"""
    brought = run(connection, _insert(staged, newest))
    return _with(staged, brought) if brought else staged


def bring_one(connection: Connection, link: str, staged: Staged, key: Sequence[str]) -> Staged:
    """Stage one waiting row alone, by its own version."""
    stage.create(connection, staged)
    this = f"concord.waiting w WHERE {of(link, staged.shape)} AND w.key = {json_of(key)}"
    return _with(staged, run(connection, _insert(staged, this)))


def _with(staged: Staged, brought: int) -> Staged:
    attempts = (*staged.attempts, stage.RETRIED)
    return replace(staged, attempts=attempts, rows=staged.rows + brought, retried=brought)


def _insert(staged: Staged, waiting: str) -> str:
    shape = staged.shape
    values = texts(shape)
    version = [f"(w.version ->> '{name}')::{staged.version_types[name]}" for name in _VERSION]
    names = [*(shape.alias(column) for column in shape.columns), *_VERSION, "verdict", "attempt"]
    return (
        f"INSERT INTO {staged.sql} ({', '.join(names)})"
        f" SELECT {', '.join([*values, *version])}, 'apply', {stage.RETRIED} FROM {waiting}"
    )


def texts(shape: Shape) -> list[str]:
    """The image as it is staged."""
    return [f"({_image(column.name)})::{column.type.staging}" for column in shape.columns]


def hurry(connection: Connection, link: str, shape: Shape, key: Sequence[str]) -> bool:
    """Try this row again, before the others, if its image has the columns of now, and reads the same in them: has it?

    Raises the error of the database, a refusal, where a value is none of its column any more.
    """
    names = ", ".join(literal(name) for name in sorted(shape.names))
    fits = f'ARRAY(SELECT jsonb_object_keys(w.row_image) COLLATE "C" ORDER BY 1) = ARRAY[{names}]'
    # A shorter varchar cuts, another scale rounds: the sites would differ under one version.
    same = " AND ".join(
        f"({each.type.exact(value)})::text IS NOT DISTINCT FROM {_image(each.name)}"
        for each, value in (
            (column, f"({_image(column.name)})::{column.type.sql}") for column in shape.columns
        )
    )
    hurried = run(
        connection,
        f"UPDATE concord.waiting w SET tried_at = '-infinity', structure = {literal(shape.table.structure)}"
        f" WHERE {of(link, shape)} AND w.key = {json_of(key)} AND {fits} AND {same}",
    )
    return hurried > 0


def _not_staged(staged: Staged) -> str:
    if not staged.rows:
        return "true"
    matches = same_key(staged.shape, "s")
    return f"NOT EXISTS (SELECT 1 FROM {staged.typed} s WHERE {matches})"


def of(link: str, shape: Shape) -> str:
    """Condition on a waiting row `w`."""
    return f"w.link = {literal(link)} AND w.table_name = {literal(shape.name)}"


def json_of(value: object) -> str:
    """SQL of a JSON value."""
    return f"{literal(json.dumps(value))}::jsonb"


def _image(column: str) -> str:
    return f"w.row_image ->> {literal(column)}"


def key_of(shape: Shape) -> list[str]:
    """The key of a waiting row `w`, each column in its type."""
    return [f"({_image(column.name)})::{column.type.sql}" for column in shape.key]


def same_key(shape: Shape, row: str) -> str:
    """Condition: the waiting row `w` has the key of the other one."""
    pairs = zip(shape.key, key_of(shape), strict=True)
    return " AND ".join(f"{shape.key_in(row, column)} = {value}" for column, value in pairs)


def waits(shape: Shape, row: str, verdicts: str | None) -> str:
    """Condition: a version of `row` waits here that the present one does not include. It waits by the verdicts of
    this run, or since an earlier one, of whichever link."""
    kinds = ", ".join(map(literal, KINDS))
    now = f"SELECT 1 FROM {verdicts} v WHERE {shape.same_key('v', row)} AND v.verdict IN ({kinds})"
    # The key may have had another type when the row came, into which its text no longer fits: compared as it reads.
    texts = " AND ".join(
        f"{_image(c.name)} = ({c.type.exact(shape.key_in(row, c))})::text" for c in shape.key
    )
    same = texts
    if any(column.type.has_several_forms for column in shape.key):
        altered = f"w.structure <> {literal(shape.table.structure)}"
        same = f"CASE WHEN {altered} THEN {texts} ELSE {same_key(shape, row)} END"
    included = f"SELECT 1 FROM {shape.shadow.sql} p WHERE {shape.same_key('p', row)} AND {_INCLUDED}"
    earlier = f"w.table_name = {literal(shape.name)} AND {same} AND NOT EXISTS ({included})"
    return (
        f"({f'EXISTS ({now})' if verdicts else 'false'}"
        f" OR EXISTS (SELECT 1 FROM concord.waiting w WHERE {earlier}))"
    )


def remember(connection: Connection, judged: Judged, job: LinkJob) -> None:
    """Keep what was not written, in the transaction that moves the position past it.

    A row that is too large is kept by its key, as one of other columns. Its source has it, and sends it again when it
    is edited.
    """
    shape = judged.staged.shape
    key = ", ".join(shape.canonical_key("v"))
    version = ", ".join(f"'{name}', s.concord_{name}" for name in _VERSION)
    against = f"CASE WHEN v.p_origin <> '' THEN {version_object('p')} END"
    updated = [
        "kind",
        "version",
        "row_image",
        "structure",
        "against",
        "conflict_type",
        "resolver",
        "reason",
        "transmission",
    ]
    structure = (
        f"CASE WHEN {large_rows.is_large(shape, 's')} THEN '' ELSE {literal(shape.table.structure)} END"
    )
    newer = "w.version - 'vector' <> excluded.version - 'vector' OR w.kind <> excluded.kind"
    run(
        connection,
        f"""
INSERT INTO concord.waiting AS w (link, table_name, key, synchronization, {", ".join(updated)})
SELECT {literal(job.link)}, {literal(shape.name)}, to_jsonb(ARRAY[{key}]), {literal(job.synchronization)},
       v.verdict, jsonb_build_object({version}), {large_rows.image_or_key(shape, "s")}, {structure}, {against},
       CASE WHEN v.verdict = 'held' THEN {conflict_type(shape)} END, v.resolver,
       coalesce(v.reason, v.verdict), {literal(job.transmission)}
  FROM {judged.verdicts} v JOIN {judged.staged.typed} s ON {shape.same_key("s", "v")}
 WHERE v.verdict IN ({", ".join(map(literal, KINDS))})
ON CONFLICT (link, table_name, key) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in updated)},
  tried_at = now(), since = CASE WHEN {newer} THEN now() ELSE w.since END,
  tries = CASE WHEN {newer} THEN 1 ELSE least(w.tries, {LARGEST["integer"] - 1}) + 1 END""",
    )


def withdraw(connection: Connection, job: LinkJob, staged: Staged, source_origin: str) -> None:
    """Let go of versions that the source has sent before and does not hold any more, although it made them itself.
    It has stamped them anew (`versions.restamp`). Whatever else a source sends has seen what it sent before."""
    shape = staged.shape
    seen = row_version.includes("s.concord_vector", *_OF_JSON)
    run(
        connection,
        f"DELETE FROM concord.waiting w USING {staged.typed} s WHERE {of(job.link, shape)} AND w.kind = 'quarantined'"
        f" AND w.transmission <> {literal(job.transmission)} AND w.structure = {literal(shape.table.structure)}"
        f" AND {same_key(shape, 's')} AND NOT s.concord_retried"
        f" AND w.version ->> 'origin' = {literal(source_origin)} AND NOT ({seen})",
    )


def forget(connection: Connection, link: str, shapes: Sequence[Shape]) -> None:
    """Let go of what the present versions include, also where the table was altered since."""
    for shape in shapes:
        structure = literal(shape.table.structure)
        run(connection, _letting_go(link, shape, f"w.structure = {structure}"))
        altered = (
            f"SELECT w.key FROM concord.waiting w WHERE {of(link, shape)} AND w.structure <> {structure}"
        )
        _forget_altered(connection, link, shape, [key for (key,) in rows(connection, altered)])


def _forget_altered(connection: Connection, link: str, shape: Shape, keys: Sequence[Sequence[str]]) -> None:
    """The key may have had a type then of which its text is no value now: halved until such a one stands alone."""
    if not keys:
        return
    these = f"w.key IN ({', '.join(map(json_of, keys))})"
    try:
        with connection.transaction():
            run(connection, _letting_go(link, shape, these))
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        if half := len(keys) // 2:
            _forget_altered(connection, link, shape, keys[:half])
            _forget_altered(connection, link, shape, keys[half:])


def _letting_go(link: str, shape: Shape, those: str) -> str:
    return (
        f"DELETE FROM concord.waiting w USING {shape.shadow.sql} p"
        f" WHERE {of(link, shape)} AND {those} AND {same_key(shape, 'p')} AND {_INCLUDED}"
    )
