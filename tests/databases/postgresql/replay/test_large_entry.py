"""A large entry by set, and the same operation by operation: one table, and one list of counts (S0-47, S0-48)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries import staging
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.facts.catalogue import read_tables
from concord.databases.postgresql.facts.refusal import is_refusal
from concord.databases.postgresql.replay import large_entry, level, procedure
from concord.jobs.replication import Conversions, ReplicationDefinition
from concord.values.identifier import parse_table_name
from tests.conftest import Database

#: A key of two columns; rows with a column that the subscriber alone has, and a numbered key; a value in no two rows.
DDL = """
CREATE SCHEMA concord;
CREATE TABLE pair (a int, b text, n int, big text, PRIMARY KEY (a, b));
CREATE TABLE kept (a int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b text, n int, big text, mine int DEFAULT 7);
CREATE TABLE once (a int PRIMARY KEY, b text, n int UNIQUE, big text)"""
TABLES = ("pair", "kept", "once")
COLUMNS = ("a", "b", "n", "big")
Row = tuple[int, str, int | None, str | None]
Outcome = tuple[list[list[tuple[Any, ...]]], Any, int]


@dataclass
class Entry:
    """Operations that a publisher can have committed, as they are staged."""

    tables: dict[str, dict[object, Row]] = field(default_factory=lambda: {name: {} for name in TABLES})
    staged: list[str] = field(default_factory=list)
    seq: int = 1

    def key(self, name: str, row: Row) -> object:
        return row[:2] if name == "pair" else row[0]

    def operate(self, name: str, kind: str, old: Row, new: Row) -> None:
        """Do what is possible where the publisher stands; else nothing."""
        rows = self.tables[name]
        before, after = self.key(name, old), self.key(name, new)
        if kind == "I" and after not in rows:
            self.put(name, "I", new, new)
        elif kind == "T":
            rows.clear()
            self.stage(name, "T", None, None)
        elif before in rows and kind == "D":
            self.stage(name, "D", None, rows.pop(before))
        elif before in rows and kind == "U" and (after not in rows or after == before):
            self.put(name, "U", new, rows.pop(before))
        elif before in rows and kind == "V":
            held = rows.pop(before)
            self.put(name, "V", (held[0], held[1], new[2], held[3]), held)

    def put(self, name: str, kind: str, new: Row, old: Row) -> None:
        self.tables[name][self.key(name, new)] = new
        self.stage(name, kind, new, old)

    def stage(self, name: str, kind: str, new: Row | None, old: Row | None) -> None:
        self.seq += 1
        before = [] if old is None else list(old)
        sent = [] if new is None else list(new if kind != "V" else (*new[:3], None))
        named = [f"c{n}" for n in range(len(sent))] + [f"o{n}" for n in range(len(before))]
        values = [sql(each) for each in (*sent, *before)]
        kept = ["B'0001'"] if kind == "V" else ["NULL"]
        self.staged.append(
            f"INSERT INTO pg_temp.concord_operation_{TABLES.index(name)} "
            f"({', '.join(['seq', 'operation', 'kept', *named])}) VALUES"
            f" ({', '.join([str(self.seq), repr(kind), *kept, *values])})"
        )


def sql(value: object) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, int) else literal(str(value))


ROWS = st.tuples(
    st.integers(1, 4), st.sampled_from("xy"), st.none() | st.integers(1, 6), st.sampled_from(["", "long"])
)
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(TABLES), st.sampled_from("IIIUUUDDTV"), ROWS, ROWS), min_size=1, max_size=12
)
#: By table: rows of the publisher, and those that stand otherwise, or not at all, at the subscriber.
BEFORE = st.dictionaries(
    st.sampled_from(TABLES), st.tuples(st.lists(ROWS, max_size=4), st.lists(ROWS, max_size=2))
)


class Subscriber:
    """One that replays an entry, and forgets it."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.run(DDL, *level.STATEMENTS, "INSERT INTO concord.replay VALUES ('r', 'p', 0, NULL, 0, 0, 1)")
        self.run("SET search_path = ''")
        names = [parse_table_name(f"public.{name}") for name in TABLES]
        found = read_tables(connection, names)
        plain = tuple(
            ReplicatedTable(
                f"public.{name.name}",
                place,
                found[name],
                tuple(map(found[name].column, COLUMNS)),
                found[name].primary_key,
                found[name].primary_key,
            )
            for place, name in enumerate(names)
        )
        compared = tuple(replace(each, before=COLUMNS) for each in plain)
        mine = level.Level("r", "p", 1, "here")
        staging.create_entries(connection)
        staging.create(connection, compared)
        self.run("SET session_replication_role = replica", "CREATE SCHEMA other")
        for conversions in Conversions:
            tables = plain if conversions is Conversions.COUNT else compared
            made = [procedure.create(tables, mine, _replication(conversions))]
            made += large_entry.create(tables, mine, conversions, set())
            for each in made:
                if not each.startswith("CREATE TEMPORARY") or conversions is Conversions.COUNT:
                    self.run(each.replace("concord_replay", f"concord_{conversions}"))

    def run(self, *statements: str) -> None:
        self.connection.execute(";".join(statements).encode())

    def outcome(self, what: str, standing: list[str], entry: Entry) -> Outcome | psycopg.Error:
        """Tables, counts and conversions; nothing of it stays."""
        end = f"INSERT INTO pg_temp.concord_entry VALUES (1, {entry.seq}, 5, now())"
        try:
            self.run("BEGIN", *standing, *entry.staged, end)
            [(done,)] = self.connection.execute(f"CALL pg_temp.{what}(0, NULL)".encode()).fetchall()
            found = [
                sorted(self.connection.execute(f"SELECT * FROM public.{name}".encode()).fetchall(), key=repr)
                for name in TABLES
            ]
            [(conversions,)] = self.connection.execute("SELECT conversions FROM concord.replay").fetchall()
            return found, done, conversions
        except psycopg.Error as error:
            return error
        finally:
            self.run("ROLLBACK")


def _replication(conversions: Conversions) -> ReplicationDefinition:
    ends = {"publisher": "london", "subscriber": "capetown"}
    return ReplicationDefinition(
        name="pairs", replication_set="pairs", tables=(), conversions=conversions, **ends
    )


@pytest.fixture
def subscriber(database: Callable[[], Database]) -> Iterator[Subscriber]:
    with psycopg.connect(database().uri, autocommit=True) as connection:
        yield Subscriber(connection)


def standing_at(entry: Entry, before: dict[str, Any]) -> list[str]:
    """The publisher's rows before the entry go to its model; the subscriber's are what it has instead."""
    made = []
    for name, (rows, others) in before.items():
        used = set[int | None]()
        for row in rows:
            if name != "once" or row[2] not in used:
                entry.tables[name].setdefault(entry.key(name, row), row)
                used.add(row[2])
        here = dict(entry.tables[name])
        for other in others:
            if here.pop(entry.key(name, other), None) is None and (name != "once" or other[2] not in used):
                here[entry.key(name, other)] = other
                used.add(other[2])
        for row in here.values():
            own = ", 8" if name == "kept" else ""
            made.append(
                f"INSERT INTO public.{name} OVERRIDING SYSTEM VALUE VALUES ({', '.join(map(sql, row))}{own})"
            )
    return made


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=BEFORE, operations=OPERATIONS, conversions=st.sampled_from(Conversions))
@example(  # the row that comes and moves is another one here
    before={"pair": ([], [(3, "x", None, "")])},
    operations=[
        ("pair", "I", (3, "x", None, "long"), (3, "x", None, "long")),
        ("pair", "U", (3, "x", None, ""), (1, "y", None, "")),
    ],
    conversions=Conversions.COMPARE,
)
def test_sets_give_what_the_loop_gives_or_leave_it_to_the_loop(
    subscriber: Subscriber, before: dict[str, Any], operations: list[Any], conversions: Conversions
) -> None:
    entry = Entry()
    standing = standing_at(entry, before)
    for operation in operations:
        entry.operate(*operation)
    by_loop = subscriber.outcome(f"concord_{conversions}", standing, entry)
    by_set = subscriber.outcome(f"concord_{conversions}_by_set", standing, entry)
    if isinstance(by_set, psycopg.Error):
        event("left to the loop")
        assert by_set.sqlstate == large_entry.NOT_BY_SET or is_refusal(by_set), by_set
    else:
        event("by set")
        if _is_met_in_between(by_loop):
            return  # a row that the subscriber alone has, and a value that the entry itself has replaced
        assert by_set == by_loop


def _is_met_in_between(outcome: Outcome | psycopg.Error) -> bool:
    return isinstance(outcome, psycopg.Error) and outcome.diag.constraint_name == "once_n_key"


A, B, C = (1, "x", 1, "long"), (2, "x", 2, ""), (3, "y", 3, "long")
BY_SET = {
    "a key that wanders": [
        ("pair", "I", B, B),
        ("pair", "U", A, C),
        ("pair", "U", B, A),
        ("pair", "U", C, B),
    ],
    "a row that comes and goes": [("kept", "I", B, B), ("kept", "U", B, B), ("kept", "D", B, B)],
    "a row that goes and comes": [("pair", "D", A, A), ("pair", "I", A, A), ("pair", "U", A, A)],
    "a table filled anew": [("kept", "T", A, A), ("kept", "I", B, B), ("kept", "I", A, A)],
    "a value that was not sent": [("pair", "V", A, A), ("pair", "I", C, C), ("kept", "V", A, A)],
}
BY_LOOP = {
    "a value that was not sent, of a changed row": [("pair", "U", A, A), ("pair", "V", A, A)],
    "a table emptied in the midst": [("pair", "I", C, C), ("pair", "T", A, A), ("pair", "I", C, C)],
    "a key changed of a row with columns of its own": [("kept", "U", A, B)],
    "such a row that goes and comes": [("kept", "D", A, A), ("kept", "I", A, A)],
}


def replayed(
    subscriber: Subscriber, operations: list[Any]
) -> tuple[Outcome | psycopg.Error, Outcome | psycopg.Error]:
    """By the loop and by set, where A is there already; in `once`, a row holds what another one gives up."""
    entry = Entry()
    standing = standing_at(entry, {name: ([A], []) for name in TABLES})
    for operation in operations:
        entry.operate(*operation)
    assert len(entry.staged) == len(operations)
    return subscriber.outcome("concord_count", standing, entry), subscriber.outcome(
        "concord_count_by_set", standing, entry
    )


def test_sets_can_tell_most_histories_of_a_key(subscriber: Subscriber) -> None:
    for what, operations in BY_SET.items():
        by_loop, by_set = replayed(subscriber, operations)
        assert not isinstance(by_set, psycopg.Error), (what, by_set)
        assert by_set == by_loop, what


def test_the_loop_does_what_sets_cannot_tell(subscriber: Subscriber) -> None:
    for what, operations in BY_LOOP.items():
        by_loop, by_set = replayed(subscriber, operations)
        assert not isinstance(by_loop, psycopg.Error), (what, by_loop)
        assert isinstance(by_set, psycopg.Error), what
