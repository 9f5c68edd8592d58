"""The promises that must hold after a run, each checked against the databases and the repository."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg import sql

from concord.configuration.configuration import Configuration
from concord.databases.postgresql.rows.content import Content, content
from concord.databases.postgresql.sites.ends import Source, Target
from concord.jobs.link import Direction
from concord.messages.how_many import how_many
from demo.counters import Written, difference
from demo.expectation import SOURCES, Contested, Expectation
from demo.flights import KEYS
from demo.outcome import Decided, RunOutcome
from demo.sites import TITLES, USERS, Sites
from demo.starting_point import forward_job

#: Site → table → what the site's database says of its content.
Contents = Mapping[str, Mapping[str, Content]]


@dataclass(frozen=True)
class Check:
    """One promise; `trouble` says how it is broken, and is empty when it is kept."""

    promise: str
    trouble: str = ""

    @property
    def kept(self) -> bool:
        return not self.trouble


def contents(sites: Sites, configuration: Configuration) -> Contents:
    """Row count and content hash of every table at both sites, computed by the databases."""
    job = forward_job(sites, configuration)
    found = {}
    for end in (Source(job), Target(job)):
        try:
            shapes, _ = end.inspect(job.tables)
            found[end.access.name] = content(end.connection, shapes)
        finally:
            end.close()
    return found


def applied_as_expected(run: RunOutcome, expected: Expectation) -> Iterator[Check]:
    """Each link applied exactly the rows that the other site's users changed, or changed last."""
    alike = {f"public.{table}": rows for table, rows in expected.alike.items() if rows}
    for direction, source in SOURCES.items():
        target = TITLES[SOURCES[direction.related]]
        wanted = {f"public.{table}": rows for table, rows in expected.applied[direction].items()}
        went = f"{sum(wanted.values()):,} applied in {target}"
        alike_or_lost = f" + {sum(alike.values()):,} alike + {expected.lost_at(source):,} lost"
        promise = (
            f"{how_many(expected.edited(source), 'row')} edited in {TITLES[source]} = {went}{alike_or_lost}"
        )
        yield Check(promise, _unequal(wanted, _counted(run, direction, "applied")))
    found = _counted(run, Direction.FORWARD, "converged")
    yield Check("what both sites did alike is no conflict, and nobody's loss", _unequal(alike, found))


def _counted(run: RunOutcome, direction: Direction, outcome: str) -> dict[str, int]:
    link = run.links.get(direction)
    counts = {table.table: int(getattr(table, outcome)) for table in link.tables} if link else {}
    return {table: rows for table, rows in counts.items() if rows}


def conflicts_as_expected(run: RunOutcome, expected: Expectation) -> Iterator[Check]:
    """Every contested row is in the conflict log once, won by the later edit, with the loser's values."""
    wanted = {_name(row.table, row.key): row for row in expected.contested}
    found = {(row.table, _as_key(row)): row for row in run.conflicts}
    trouble = ""
    if wanted.keys() != found.keys() or len(run.conflicts) != len(found):
        missing, extra = len(wanted.keys() - found.keys()), len(found.keys() - wanted.keys())
        trouble = f"{len(run.conflicts)} are in the log: {missing} missing, {extra} unexpected"
    lost = " + ".join(f"{expected.lost_at(site)} lost in {title}" for site, title in TITLES.items())
    yield Check(f"{how_many(len(wanted), 'conflict')} in the log = {lost}", trouble)
    both = [(row, found[name]) for name, row in wanted.items() if name in found]
    wrong = [decided for row, decided in both if decided.winner != row.winner]
    yield Check("the later edit won each of them", _listed(wrong))
    gone = [decided for row, decided in both if not _image_has(decided.loser_row, row.lost_values)]
    yield Check("the loser's whole row is kept in the log", _listed(gone))


def contested_rows_settled(sites: Sites, expected: Expectation) -> Check:
    """At both sites each contested row holds what the later edit made of it."""
    wrong = [
        f"{row.table} {' '.join(map(str, row.key))} at {site.title}"
        for site in sites.values()
        for row in _unsettled(site.connect(USERS), expected.contested)
    ]
    return Check("at both sites every contested row is as its last user left it", "; ".join(wrong[:3]))


def sites_equal(found: Contents, before: Mapping[str, Content], expected: Expectation) -> Iterator[Check]:
    """Both sites hold the same rows, and as many as the edits leave."""
    one, other = (found[site] for site in TITLES)
    different = [table for table in one if one[table] != other[table]]
    yield Check("both sites hold the same rows in every table", _different(different))
    wanted = {
        table: each.rows + expected.added.get(name, 0) - expected.removed.get(name, 0)
        for table, each in before.items()
        for name in [table.partition(".")[2]]
    }
    rows = {table: each.rows for table, each in one.items()}
    yield Check("no row is missing and none is too many", _unequal(wanted, rows))


def nothing_written(run: RunOutcome, before: Written, after: Written) -> Iterator[Check]:
    """A run without anything to do writes no row, by the databases' own counters."""
    moved = sum(link.total("acquired") for link in run.links.values())
    yield Check(
        "the second run found nothing to move", f"it acquired {how_many(moved, 'row')}" if moved else ""
    )
    rows = [
        f"{count} in {table} at {TITLES[site]}" for (site, table), count in difference(before, after).items()
    ]
    yield Check("the second run wrote no row at either site", "; ".join(rows))


def run_succeeded(run: RunOutcome, which: str) -> Check:
    """The repository has the run as succeeded, with a transmission of either link."""
    complete = run.succeeded and set(run.links) == set(Direction)
    return Check(f"the {which} run completed both links", "" if complete else "the repository says otherwise")


def _unsettled(connecting: Any, contested: Sequence[Contested]) -> Iterator[Contested]:
    with connecting as connection:
        for row in contested:
            columns = list(row.values or {}) or ["ctid"]
            where = sql.SQL(" AND ").join(
                sql.SQL("{} = %s").format(sql.Identifier(name)) for name in KEYS[row.table]
            )
            listed = sql.SQL(", ").join(map(sql.Identifier, columns))
            query = sql.SQL("SELECT {} FROM {} WHERE {}").format(listed, sql.Identifier(row.table), where)
            found = connection.execute(query, row.key).fetchone()
            if found != (None if row.values is None else tuple(row.values.values())):
                yield row


def _name(table: str, key: Sequence[Any]) -> tuple[str, tuple[str, ...]]:
    return (f"public.{table}", tuple(map(_text, key)))


def _text(value: Any) -> str:
    return (
        value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S+00") if isinstance(value, datetime) else str(value)
    )


def _as_key(row: Decided) -> tuple[str, ...]:
    return tuple(map(str, row.key))


def _image_has(image: Mapping[str, Any] | None, values: Mapping[str, Any] | None) -> bool:
    if image is None or values is None:
        return image is None and values is None
    return all(image[column] == str(value) for column, value in values.items())


def _listed(wrong: Sequence[Decided]) -> str:
    return "; ".join(f"not so: {row.table} {' '.join(row.key)}" for row in wrong[:3])


def _different(tables: Sequence[str]) -> str:
    return f"they differ in {', '.join(tables)}" if tables else ""


def _unequal(wanted: Mapping[str, int], found: Mapping[str, int]) -> str:
    return "; ".join(
        f"{table}: {found.get(table, 0):,} instead of {wanted.get(table, 0):,}"
        for table in sorted({*wanted, *found})
        if wanted.get(table, 0) != found.get(table, 0)
    )
