"""Two sites whose application keeps the marks: each with its own precision and time zone, no trigger anywhere."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Self

from pyspark.sql import SparkSession

from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.postgresql.rows.content import comparable, content
from concord.databases.postgresql.sites.ends import Source
from concord.tables.replication_set import Marks, ReplicatedTable, TableName
from tests.given.site import APPLICATION, Site, provision_site
from tests.given.two_sites import Pair

TABLE = TableName(schema_name="public", name="customer")
SHADOW = 'concord."public.customer"'
CAPE_TOWN = "Africa/Johannesburg"
MARKS = Marks(changed_at="updated_at", deleted="is_deleted")
CONTROL = {"concord.site", "concord.synchronization", "concord.link_state", "concord.replicated_table"}

#: The application's clock at a site: a column with or without time zone, and what it writes into it.
Clock = tuple[str, str]
MICROSECONDS: Clock = ("timestamptz", "clock_timestamp()")
MILLISECONDS: Clock = ("timestamptz(3)", "date_trunc('milliseconds', clock_timestamp())")
SECONDS: Clock = ("timestamptz(0)", "date_trunc('second', clock_timestamp())")
LOCAL_MILLISECONDS: Clock = (
    "timestamp(3)",
    f"date_trunc('milliseconds', clock_timestamp() AT TIME ZONE '{CAPE_TOWN}')",
)
LOCAL_SECONDS: Clock = ("timestamp(0)", f"date_trunc('second', clock_timestamp() AT TIME ZONE '{CAPE_TOWN}')")


def table_with(clock: Clock) -> str:
    return (
        f"CREATE TABLE customer (id int PRIMARY KEY, note text, updated_at {clock[0]} NOT NULL DEFAULT {clock[1]},"
        " is_deleted boolean NOT NULL DEFAULT false);"
        f" CREATE INDEX ON customer (updated_at); GRANT ALL ON customer TO {APPLICATION}"
    )


@dataclasses.dataclass
class Shop:
    """A site's application: it marks what it changes, and never deletes."""

    site: Site
    clock: Clock

    def insert(self, key: int, note: str) -> None:
        self.site.as_application(f"INSERT INTO customer (id, note) VALUES ({key}, '{note}')")

    def update(self, key: int, note: str) -> None:
        self.site.as_application(self.updating(key, note))

    def updating(self, key: int, note: str) -> str:
        return f"UPDATE customer SET note = '{note}', updated_at = {self.clock[1]} WHERE id = {key}"

    def delete(self, key: int) -> None:
        self.site.as_application(
            f"UPDATE customer SET is_deleted = true, updated_at = {self.clock[1]} WHERE id = {key}"
        )

    def bring_back(self, key: int, note: str) -> None:
        """T20: the application uses the key of a deleted row again."""
        self.site.as_application(
            f"UPDATE customer SET is_deleted = false, note = '{note}', updated_at = {self.clock[1]} WHERE id = {key}"
        )

    def write(self, key: int, note: str, step: str) -> None:
        """Insert, update, delete or bring back, the note changed in any case."""
        if step == "insert":
            self.insert(key, note)
        else:
            flag = {"update": "is_deleted", "delete": "true", "bring_back": "false"}[step]
            self.site.as_application(
                f"UPDATE customer SET note = '{note}', is_deleted = {flag}, updated_at = {self.clock[1]}"
                f" WHERE id = {key}"
            )

    def row(self, key: int) -> tuple[str, bool] | None:
        found = self.site.rows(f"SELECT note, is_deleted FROM customer WHERE id = {key}")
        return found[0] if found else None

    def mark(self, key: int) -> Any:
        return self.site.value(f"SELECT updated_at::text FROM customer WHERE id = {key}")

    def moment(self, key: int) -> int:
        """The mark in µs UTC, whatever the column."""
        zone = "" if self.clock[0].startswith("timestamptz") else f" AT TIME ZONE '{CAPE_TOWN}'"
        return int(
            self.site.value(
                f"SELECT (extract(epoch FROM updated_at{zone}) * 1000000)::bigint FROM customer WHERE id = {key}"
            )
        )


@dataclasses.dataclass
class Shops:
    """London and Cape Town with their applications."""

    pair: Pair
    london: Shop
    capetown: Shop

    def on(self, pair: Pair) -> Self:
        """The same shops at these sites, which are the same or copies."""
        london, capetown = Shop(pair.london, self.london.clock), Shop(pair.capetown, self.capetown.clock)
        return dataclasses.replace(self, pair=pair, london=london, capetown=capetown)

    @property
    def both(self) -> tuple[Shop, Shop]:
        return self.london, self.capetown

    def notes(self) -> Iterator[list[tuple[Any, ...]]]:
        for shop in self.both:
            yield shop.site.rows("SELECT id, note, is_deleted FROM customer ORDER BY id")

    @property
    def agree(self) -> bool:
        ours, theirs = self.notes()
        return ours == theirs

    @property
    def equal(self) -> bool:
        """All rows and all columns, marks as exactly as both sites can hold them."""
        ends = [Source(self.pair.job(direction)) for direction in ("forward", "reverse")]
        try:
            shapes = comparable(*(end.inspect(self.pair.tables)[0] for end in ends))
            ours, theirs = (content(end.connection, each) for end, each in zip(ends, shapes, strict=True))
            return ours == theirs
        finally:
            for end in ends:
                end.close()


def open_shops(
    london: Site,
    capetown: Site,
    spark: Callable[[], SparkSession],
    *,
    clocks: tuple[Clock, Clock] = (MICROSECONDS, MICROSECONDS),
    common: str = "SELECT n, 'common', '2026-01-02 03:04:05+00' FROM generate_series(1, 10) n",
    marks: Marks = MARKS,
    **table: Any,
) -> Shops:
    """Both sites with the same rows, provisioned and declared equal. `common` says which: key, note, moment."""
    zones = {
        site.name: CAPE_TOWN
        for site, clock in zip((london, capetown), clocks, strict=True)
        if not clock[0].startswith("timestamptz")
    }
    tables = (ReplicatedTable(table=TABLE, tracking=marks.model_copy(update={"time_zone": zones}), **table),)
    for site, clock in zip((london, capetown), clocks, strict=True):
        here = f" AT TIME ZONE '{zones[site.name]}'" if site.name in zones else ""
        site.run(
            table_with(clock),
            f"INSERT INTO customer SELECT id, note, moment::timestamptz{here}, false"
            f" FROM ({common}) c (id, note, moment)",
        )
        provision_site(site, tables)
    pair = Pair(london, capetown, tables, spark)
    declare_equal(pair.job())
    return Shops(pair, Shop(london, clocks[0]), Shop(capetown, clocks[1]))


def quiet(shops: Shops) -> None:
    """Three further rounds write nothing, by the databases' own counters (rule 12)."""
    before = [site.writes() for site in shops.pair.sites]
    for _ in range(3):
        assert shops.pair.run("forward").total("acquired") == shops.pair.run("reverse").total("acquired") == 0
    for site, then in zip(shops.pair.sites, before, strict=True):
        assert {table for table, count in site.writes().items() if count != then[table]} <= CONTROL
