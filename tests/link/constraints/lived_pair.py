"""Two sites whose edits break a constraint together: all of it lived in one run, and looked at after every link."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import SparkSession

from concord.databases.contract.ends import Progress
from concord.jobs.site import Capture
from embedded.postgres import Server
from tests.given.at_rest import control
from tests.given.broken_constraints import broken
from tests.given.fixtures import site_on
from tests.given.link_without_spark import carry
from tests.given.site import Rows, Site
from tests.given.two_sites import Pair, begin

Happen = Callable[[Site, Site], None]

#: The lives of a scenario that is the same however changes are found: either link first.
OVER_CAPTURES = [
    pytest.param((first, capture), id=f"{first} by {capture}")
    for capture in Capture
    for first in ("forward", "reverse")
]


@dataclass
class Life:
    """The two sites, and what was found after each link."""

    sites: Pair
    order: tuple[str, str]
    unsound: list[str] = field(default_factory=list)
    quiet: set[str] = field(default_factory=set)

    @property
    def control(self) -> set[str]:
        """The tables that a further run may write."""
        return {table for site in self.sites.sites for table in control(site)}

    def rows(self, query: str) -> Rows:
        """The rows of both sites: the same."""
        london, capetown = (site.rows(query) for site in self.sites.sites)
        assert london == capetown
        return london

    def ledger(self, *tables: str) -> list[dict[str, Any]]:
        """The entries about rows of these tables, of both sites together."""
        names = {f"public.{table}" for table in tables}
        return [entry for entry in self.sites.conflicts() if entry["table_name"] in names]

    def lost(self, table: str, *keys: int) -> list[dict[str, Any]]:
        """The entries about the rows with these keys."""
        return [entry for entry in self.ledger(table) if int(entry["key"][0]) in keys]

    def run(self, direction: str, progress: Progress | None = None) -> int:
        """One link, and every constraint of both sites looked at; how many rows it found changed."""
        job = self.sites.job(direction)
        written = carry(job) if progress is None else carry(job, progress)
        self.unsound += [name for site in self.sites.sites for name in broken(site)]
        return sum(report.acquired for report in written.values())

    def gone_without_a_trace(self, names: Sequence[str]) -> set[tuple[str, int]]:
        """Rows of these tables that are gone, although no user deleted them (`note_deletes`), and the ledger does not
        name them."""
        gone = {
            (name, key)
            for site in self.sites.sites
            for name in names
            for (key,) in site.rows(
                f"SELECT id FROM concord.\"public.{name}\" WHERE deleted AND origin <> ''"
            )
        }
        deleted = {
            (name, key)
            for site in self.sites.sites
            for name, key in site.rows("SELECT name, id FROM deletes")
        }
        named = {(e["table_name"].removeprefix("public."), int(e["key"][0])) for e in self.ledger(*names)}
        return gone - deleted - named

    def settle(self) -> None:
        """Each link twice; then once more, when nothing is left to be written."""
        for direction in self.order * 2:
            self.run(direction)
        before = [site.stored for site in self.sites.sites]
        for direction in self.order:
            self.run(direction)
        for site, was in zip(self.sites.sites, before, strict=True):
            self.quiet |= site.written_since(was)


def note_deletes(names: Sequence[str], *sites: Site) -> None:
    """The users' deletes, and their cascades; silent while a link writes."""
    for site in sites:
        site.run(
            "CREATE TABLE deletes (name text, id int)",
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " INSERT INTO public.deletes VALUES (TG_TABLE_NAME, OLD.id); RETURN NULL; END $$",
            *(
                f"CREATE TRIGGER note AFTER DELETE ON {name} FOR EACH ROW EXECUTE FUNCTION note()"
                for name in names
            ),
        )


def live(
    request: pytest.FixtureRequest, server: Server, name: str, tables: tuple[str, ...], happen: Happen
) -> Iterator[Life]:
    """A life in which the link `request.param` always runs first; with it may stand how changes are found."""
    first, capture = request.param if isinstance(request.param, tuple) else (request.param, Capture.TRIGGERS)

    def make(site: str) -> Site:
        database = f"{name}_{first}_{capture}_{site}"
        server.create_database(database)
        return site_on(server, site, database, by_log=capture is Capture.LOG)

    def spark() -> SparkSession:
        raise AssertionError("these links run without Spark")

    order = ("forward", "reverse") if first == "forward" else ("reverse", "forward")
    life = Life(begin(make("london"), make("capetown"), tables, spark), order)
    try:
        happen(*life.sites.sites)
        life.settle()
        yield life
    finally:
        for site in life.sites.sites:
            site.close()
            server.drop_database(site.database)
