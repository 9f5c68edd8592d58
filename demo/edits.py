"""The edits of both sites' users between two runs: the same every time, each known by its key."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any

import psycopg
from psycopg import sql

from demo.flights import KEYS
from demo.sites import CAPETOWN, LONDON, USERS, Sites

Key = tuple[Any, ...]
Values = Mapping[str, Any]
Connection = psycopg.Connection[Any]

#: Fewer flights leave too few for every kind of edit.
FEWEST_FLIGHTS = 1_000

#: The columns left out of a flight that did not take place.
_CANCELLED = dict.fromkeys(("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"))


class Kind(StrEnum):
    """An application's edit of a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class Edit:
    """Rows of one table that one site's users change in one transaction; all with the same columns."""

    site: str
    what: str
    table: str
    kind: Kind
    rows: Mapping[Key, Values]


def plan(connection: Connection) -> list[Edit]:
    """Every edit, in the order in which it happens. Reads which flights there are; writes nothing.

    Later edits of a row come later at every clock, since both sites run on this machine.
    """
    flights = _flights(connection)
    count = connection.execute("SELECT count(*) FROM flights").fetchone()
    assert count is not None, "count(*) always gives a row"
    return [
        *_ordinary_work(flights, min(4_000, count[0] // 10), min(3_000, count[0] // 12)),
        *_new_flights(list(islice(flights, 100))),
        *_new_destinations(),
        *_same_flight_twice(flights),
        *_deleted_here_changed_there(flights),
        *_the_same_thing(flights),
        *_other_tables(connection),
    ]


def perform(sites: Sites, edits: Sequence[Edit]) -> None:
    """Make the edits through the applications' own logins, one transaction each."""
    with sites[LONDON].connect(USERS) as london, sites[CAPETOWN].connect(USERS) as capetown:
        connections = {LONDON: london, CAPETOWN: capetown}
        for transaction in _transactions(edits):
            connection = connections[transaction[0].site]
            with connection.transaction(), connection.cursor() as cursor:
                for edit in transaction:
                    cursor.executemany(_statement(edit), _parameters(edit))


def _flights(connection: Connection) -> Iterator[Key]:
    """Flights that took place and were hardly late, in an order that is random and yet always the same."""
    columns = ", ".join(KEYS["flights"])
    chosen = "air_time IS NOT NULL AND dep_delay <= 10"
    query = f"SELECT {columns} FROM flights WHERE {chosen} ORDER BY md5(row({columns})::text) LIMIT 8000"
    return iter(
        [(*key[:-1], key[-1].astimezone(UTC)) for key in connection.execute(query.encode()).fetchall()]
    )


def _ordinary_work(flights: Iterator[Key], late_here: int, late_there: int) -> Iterator[Edit]:
    """Different flights at either site: delays, cancellations, withdrawals."""
    yield _update(
        LONDON, "delays", [(key, _delay(i, 15)) for i, key in enumerate(islice(flights, late_here))]
    )
    yield _update(
        CAPETOWN, "delays", [(key, _delay(i, 20)) for i, key in enumerate(islice(flights, late_there))]
    )
    yield _update(LONDON, "cancellations", [(key, _CANCELLED) for key in islice(flights, 150)])
    yield _delete(CAPETOWN, "withdrawn flights", list(islice(flights, 90)))


def _new_flights(alike: Sequence[Key]) -> Iterator[Edit]:
    """Flights of a year that the data does not reach, each on a day of its own."""
    new = [_in_2014(key, i) for i, key in enumerate(alike)]
    yield _insert_flights(LONDON, "new flights", new[:60], "BOS", None)
    yield _insert_flights(CAPETOWN, "new flights", new[60:], "MIA", None)


def _new_destinations() -> Iterator[Edit]:
    """At either site a new airport, a new plane, and flights that refer to both: parents and children in one run."""
    for site, faa, name, tailnum in (
        (LONDON, "LHR", "London Heathrow", "G-CNCD"),
        (CAPETOWN, "CPT", "Cape Town International", "ZS-CND"),
    ):
        yield Edit(
            site, "new destination", "airports", Kind.INSERT, {(faa,): {"name": name, "alt": 83, "tz": 0}}
        )
        plane = {"manufacturer": "AIRBUS", "model": "A350-1041", "engines": 2, "seats": 331}
        yield Edit(site, "new destination", "planes", Kind.INSERT, {(tailnum,): plane})
        first = datetime(2014, 1, 5, 23, tzinfo=UTC)
        keys = [("DL", 9_000 + ord(faa[0]), "JFK", first + timedelta(days=day)) for day in range(5)]
        yield _insert_flights(site, "new destination", keys, faa, tailnum)


def _same_flight_twice(flights: Iterator[Key]) -> Iterator[Edit]:
    """The same flights changed at both sites: 20 last in Cape Town, 20 last in London."""
    for first, second in ((LONDON, CAPETOWN), (CAPETOWN, LONDON)):
        keys = list(islice(flights, 20))
        yield _update(first, "same flights", [(key, _delay(i, 45)) for i, key in enumerate(keys)])
        yield _update(second, "same flights", [(key, _delay(i, 120)) for i, key in enumerate(keys)])


def _deleted_here_changed_there(flights: Iterator[Key]) -> Iterator[Edit]:
    """Three flights for each order of a deletion at one site and a delay at the other."""
    for deleting, changing in ((LONDON, CAPETOWN), (CAPETOWN, LONDON)):
        deleted, delayed = list(islice(flights, 3)), list(islice(flights, 3))
        yield _delete(deleting, "deleted, then changed there", deleted)
        yield _update(changing, "deleted, then changed there", [(key, _delay(0, 33)) for key in deleted])
        yield _update(changing, "changed, then deleted there", [(key, _delay(0, 33)) for key in delayed])
        yield _delete(deleting, "changed, then deleted there", delayed)


def _the_same_thing(flights: Iterator[Key]) -> Iterator[Edit]:
    """Flights that both sites cancel, and that both withdraw: no conflict, and nobody's loss.

    London does it last, so that its versions stay and Cape Town has nothing to apply in London.
    """
    cancelled, withdrawn = list(islice(flights, 8)), list(islice(flights, 2))
    for site in (CAPETOWN, LONDON):
        yield _update(site, "flights cancelled by both", [(key, _CANCELLED) for key in cancelled])
        yield _delete(site, "flights withdrawn by both", withdrawn)


def _other_tables(connection: Connection) -> Iterator[Edit]:
    """Corrected weather, refitted planes, and one airport renamed at both sites."""
    readings = connection.execute(
        "SELECT origin, time_hour FROM weather WHERE wind_gust IS NULL ORDER BY time_hour, origin LIMIT 30"
    ).fetchall()
    gusts = {
        (origin, hour.astimezone(UTC)): {"wind_gust": 20.25 + i} for i, (origin, hour) in enumerate(readings)
    }
    yield Edit(LONDON, "corrected readings", "weather", Kind.UPDATE, gusts)
    planes = connection.execute(
        "SELECT tailnum FROM planes WHERE seats > 200 ORDER BY tailnum LIMIT 12"
    ).fetchall()
    yield Edit(
        CAPETOWN, "refitted planes", "planes", Kind.UPDATE, {(name,): {"seats": 180} for (name,) in planes}
    )
    for site, name in ((CAPETOWN, "Kennedy Airport"), (LONDON, "John F. Kennedy International")):
        yield Edit(site, "renamed airport", "airports", Kind.UPDATE, {("JFK",): {"name": name}})


def _update(site: str, what: str, rows: Sequence[tuple[Key, Values]]) -> Edit:
    return Edit(site, what, "flights", Kind.UPDATE, dict(rows))


def _delete(site: str, what: str, keys: Sequence[Key]) -> Edit:
    return Edit(site, what, "flights", Kind.DELETE, {key: {} for key in keys})


def _insert_flights(site: str, what: str, keys: Sequence[Key], dest: str, tailnum: str | None) -> Edit:
    rows = {}
    for key in keys:
        hour = key[-1]
        date = {"year": hour.year, "month": hour.month, "day": hour.day, "hour": hour.hour, "minute": 0}
        rows[key] = {
            **date,
            "sched_dep_time": hour.hour * 100,
            "dest": dest,
            "tailnum": tailnum,
        }
    return Edit(site, what, "flights", Kind.INSERT, rows)


def _delay(i: int, minutes: int) -> Values:
    """A delay of 15 minutes or more: no chosen flight had one, so that every update changes its row."""
    late = minutes + i % 60
    return {"dep_delay": late, "arr_delay": late - 10}


def _in_2014(key: Key, i: int) -> Key:
    return (*key[:-1], key[-1].replace(year=2014, month=2 + i // 28, day=1 + i % 28))


def _transactions(edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """Consecutive edits of one site that belong together."""
    together: list[Edit] = []
    for edit in edits:
        if together and (edit.site, edit.what) != (together[0].site, together[0].what):
            yield together
            together = []
        together.append(edit)
    if together:
        yield together


def _statement(edit: Edit) -> sql.Composed:
    table, key = sql.Identifier(edit.table), KEYS[edit.table]
    columns = list(next(iter(edit.rows.values())))
    where = sql.SQL(" AND ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in key)
    if edit.kind is Kind.DELETE:
        return sql.SQL("DELETE FROM {} WHERE {}").format(table, where)
    if edit.kind is Kind.UPDATE:
        changed = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in columns)
        return sql.SQL("UPDATE {} SET {} WHERE {}").format(table, changed, where)
    names = [*columns, *key]
    listed, marks = map(sql.SQL(", ").join, (map(sql.Identifier, names), [sql.SQL("%s")] * len(names)))
    return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(table, listed, marks)


def _parameters(edit: Edit) -> list[tuple[Any, ...]]:
    return [(*values.values(), *key) for key, values in edit.rows.items()]
