"""`python -m benchmarks.capture`: what capture costs the users of a table, beside an equal table without it."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks import bookings, databases, pgbench, report
from benchmarks.arguments import add_places
from benchmarks.databases import Database
from benchmarks.initialization import installation
from benchmarks.measurement import Spread
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from concord.databases.provisioning import provision
from concord.tables.replication_set import ReplicatedTable, TableName
from demo import terminal
from demo.progress import Progress

PART, BY_LOG = "capture", "log-capture"
#: Of both tables: what a site whose log is read needs, whoever pays for it.
LOGICAL = {"wal_level": "logical"}
MEDIANS = "Each number is the median of its runs, in brackets the range."

#: The schemas of the tables that are captured, and of equal ones that are not.
TRACKED, UNTRACKED = "public", "untracked"

UNTRACKED_TABLE = (
    f"CREATE SCHEMA {UNTRACKED}",
    f"CREATE TABLE {UNTRACKED}.bookings (LIKE {TRACKED}.bookings INCLUDING ALL)",
    f"INSERT INTO {UNTRACKED}.bookings SELECT * FROM {TRACKED}.bookings ORDER BY id",
)

#: The table that pgbench's transaction updates. The history that it adds to has no key, and is replicated by
#: nobody.
ACCOUNTS = ReplicatedTable(table=TableName(schema_name=TRACKED, name="pgbench_accounts"))

#: The rows that earlier turns leave behind: those edited before, and a history.
LEFT_BEHIND = ", ".join(
    (
        'concord."public.bookings"',
        'concord."public.pgbench_accounts"',
        *(f"{schema}.pgbench_history" for schema in (TRACKED, UNTRACKED)),
    )
)

#: A transaction of nothing but the update of one row.
UPDATE = "\\set id random(1, {rows})\nUPDATE bookings SET miles = miles + 1 WHERE id = :id;\n"

#: How commits end. The disk's part is the same with capture and without; where commits wait for it, it hides the rest.
COMMITS = {"wait for the disk": "on", "do not wait for it": "off"}

#: So often in each repetition: what the disk does changes within the minute.
ROUNDS_OF_SINGLES = 3

#: In this order: rows that were never edited, the same rows again, then rows that come and go.
BULK = {
    "update, first edits": "UPDATE {schema}.bookings SET miles = miles + 1 WHERE id <= {count}",
    "update, edited before": "UPDATE {schema}.bookings SET miles = miles + 1 WHERE id <= {count}",
    "delete": "DELETE FROM {schema}.bookings WHERE id <= {count}",
    "insert": "INSERT INTO {schema}.bookings {rows}",
}


@dataclass(frozen=True)
class Plan:
    """Tables of so many rows, statements that change so many of them, and how often all is repeated."""

    rows: int
    count: int
    repeat: int
    users: pgbench.Users


def _update_alone(database: Database, plan: Plan, users: pgbench.Users) -> float:
    return pgbench.transactions_per_second(database, UPDATE.format(rows=plan.rows), users)


def _simple_update(database: Database, _plan: Plan, users: pgbench.Users) -> float:
    return pgbench.simple_updates_per_second(database, users)


#: Transactions that update one row, and what runs them for a while and tells how many there were in a second.
TRANSACTIONS = {"an update alone": _update_alone, "pgbench's simple-update": _simple_update}

#: Each of them, with each end of its commit.
SINGLES = tuple(product(TRANSACTIONS, COMMITS))


@dataclass
class Pairs:
    """The same thing done to the untracked and to the tracked table, in turn: so many numbers of each."""

    untracked: list[float] = field(default_factory=list)
    tracked: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> Spread:
        """Tracked by untracked, of each two that stood beside each other: what else the machine does hits both."""
        return Spread.of([ours / theirs for ours, theirs in zip(self.tracked, self.untracked, strict=True)])

    def add(self, schema: str, number: float) -> None:
        (self.tracked if schema == TRACKED else self.untracked).append(number)


@dataclass
class Results:
    """Transactions per second of single-row updates, and seconds of each statement that changes many rows."""

    single: dict[tuple[str, str], Pairs] = field(
        default_factory=lambda: {title: Pairs() for title in SINGLES}
    )
    bulk: dict[str, Pairs] = field(default_factory=lambda: {title: Pairs() for title in BULK})


def fill(database: Database, rows: int, *, by_log: bool = False) -> None:
    """Two equal tables of bookings and two of accounts, one of each captured, by triggers or from the log. Nobody
    reads the log meanwhile."""
    database.run(*bookings.creation(rows), *UNTRACKED_TABLE)
    for schema in (TRACKED, UNTRACKED):
        pgbench.fill(database, schema, rows)
    sites = [database.name] if by_log else []
    tables = [table.told_by_log(sites) for table in (bookings.TABLE, ACCOUNTS)]
    site = installation(database, *tables)
    provision([replace(site, log_reader=site.installer.user, reads_log=site.installer)])
    database.run("VACUUM (ANALYZE)")


def measure(database: Database, plan: Plan, progress: Progress) -> Results:
    """Everything in turn, so often as the plan says; which tables come first changes each time."""
    results = Results()
    for turn in range(plan.repeat):
        schemas = (UNTRACKED, TRACKED) if turn % 2 else (TRACKED, UNTRACKED)
        with progress.step(f"{turn + 1} of {plan.repeat}") as step:
            database.run(f"TRUNCATE {LEFT_BEHIND}")  # none of them is in the log's publication
            for title in BULK:
                _bulk(database, plan, title, schemas, results.bulk[title])
            for single in SINGLES:
                _single(database, plan, single, schemas, results.single[single])
            step.result = _so_far(results)
    return results


def _bulk(database: Database, plan: Plan, title: str, schemas: Sequence[str], pairs: Pairs) -> None:
    database.run(
        "VACUUM", "CHECKPOINT"
    )  # as autovacuum would: it is off, so that it does not hit one of the two
    for schema in schemas:
        text = BULK[title].format(schema=schema, count=plan.count, rows=bookings.filling(plan.count))
        with database.connect() as connection:
            began = time.monotonic()
            connection.execute(text.encode())
            pairs.add(schema, time.monotonic() - began)


def _single(
    database: Database, plan: Plan, single: tuple[str, str], schemas: Sequence[str], pairs: Pairs
) -> None:
    database.run("VACUUM", "CHECKPOINT")
    transaction, commit = single
    for turn in range(ROUNDS_OF_SINGLES):
        for schema in schemas[:: -1 if turn % 2 else 1]:
            settings = {"search_path": schema, "synchronous_commit": COMMITS[commit]}
            users = replace(plan.users, settings=settings)
            pairs.add(schema, TRANSACTIONS[transaction](database, plan, users))


def _so_far(results: Results) -> str:
    single = {", commits ".join(both): pairs for both, pairs in results.single.items()}
    return ", ".join(f"{title} {pairs.ratio.median:.2f}" for title, pairs in (single | results.bulk).items())


def grids(results: Results, plan: Plan) -> Iterator[Grid]:
    """The columns of the report."""
    runs = f"{plan.repeat * ROUNDS_OF_SINGLES} runs of {plan.users.seconds} s"
    yield Grid(
        f"Single-row updates, {plan.users.clients} clients, {runs}",
        ("transaction", "commits", "transactions/s without", "with capture", "ratio"),
        [(*single, *_cells(pairs, ",.0f")) for single, pairs in results.single.items()],
    )
    yield Grid(
        f"One statement of {plan.count:,} rows, {plan.repeat} times",
        ("statement", "ms without", "with capture", "ratio"),
        [(title, *_cells(pairs, ",.0f", 1_000)) for title, pairs in results.bulk.items()],
    )


def _cells(pairs: Pairs, form: str, scale: int = 1) -> tuple[str, str, str]:
    medians = [format(median(numbers) * scale, form) for numbers in (pairs.untracked, pairs.tracked)]
    return medians[0], medians[1], report.spread(pairs.ratio)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    options = _parser().parse_args(arguments)
    plan = Plan(options.rows, options.count, options.repeat, pgbench.Users(options.clients, options.seconds))
    directory = options.directory.absolute()

    def measured() -> int:
        return _measure(directory, plan, by_log=options.by_log, recorded=options.record)

    return terminal.run(measured, directory)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.capture", description=__doc__)
    made.add_argument(
        "--rows",
        type=int,
        default=500_000,
        help="of each table; pgbench makes its own by the hundred thousand",
    )
    made.add_argument("--count", type=int, default=100_000, help="rows that one statement changes")
    made.add_argument("--repeat", type=int, default=5, help="runs of each measurement")
    made.add_argument("--clients", type=int, default=4)
    made.add_argument("--seconds", type=int, default=10, help="of each run of single-row updates")
    made.add_argument("--by-log", action="store_true", help="the log tells of changes, and no trigger")
    add_places(made, PART)
    return made


def _measure(directory: Path, plan: Plan, *, by_log: bool, recorded: bool) -> int:
    settings = databases.SETTINGS | (LOGICAL if by_log else {})
    with databases.alone_in_workspace(directory, settings) as database:
        fill(database, plan.rows, by_log=by_log)
        results = measure(database, plan, Progress(terminal.console()))
        where = f"{report.machine(database.version)} {MEDIANS}"
        text = "\n\n".join([where, *map(markdown, grids(results, plan))])
    publish(BY_LOG if by_log else PART, text, recorded=recorded)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
