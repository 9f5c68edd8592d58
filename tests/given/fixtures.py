"""Fixtures of real sites: each conftest.py of tests on them takes those that its tests ask for."""

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pyspark.sql import SparkSession

from concord.jobs.site import Capture
from concord.tables.replication_set import ReplicatedTable
from concord.transmission import route
from embedded.postgres import Server
from tests.conftest import Database, MakeDatabase
from tests.given import link_job
from tests.given.bare_sites import Bare
from tests.given.many_sites import Network, Topology, begin_network
from tests.given.mapped_pair import begin_mapped, configured
from tests.given.marked_sites import Shops, open_shops
from tests.given.replicated_sites import Replicated, Statements, begin_replicated
from tests.given.site import Site
from tests.given.snapshot_sites import FLIGHTS, Copies, counts
from tests.given.staged_write import TARGET, WrittenSite, begin_written
from tests.given.template_databases import Provisioned, TemplateDatabases
from tests.given.two_sites import Pair, begin

#: Has the tests of links that do not say how changes are found run with this capture.
CAPTURE = "TESTS_CAPTURE"

#: Marks a test, or a file of them, whose scenarios hold however changes are found (S1-32).
over_captures = pytest.mark.parametrize("capture", [*Capture], indirect=True, ids=str)

MakePair = Callable[..., Pair]
MakePreparedPair = Callable[[str, Sequence[str], Callable[[Pair], Pair]], Pair]
MakeNetwork = Callable[..., Network]
MakePreparedNetwork = Callable[[Hashable, Callable[[MakeNetwork], Network]], Network]
MakeShops = Callable[..., Shops]
MakeWritten = Callable[..., WrittenSite]


@pytest.fixture
def carried_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were very many rows: Spark carries what meets nothing as well."""
    monkeypatch.setattr(link_job, "SPARK_FROM_HERE", 0)


@pytest.fixture(params=["at the target", "by Spark"])
def judged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conflicts are judged under the target's locks, or by Spark before anything is locked: with the same end."""
    if request.param == "by Spark":
        monkeypatch.setattr(route, "MOST_UNDER_LOCK", 0)


def site_on(server: Server, name: str, database: str, *, by_log: bool = False) -> Site:
    return Site(name, server.host, server.port, database, server.superuser, server.password, by_log)


def two_sites(database: MakeDatabase) -> Iterator[Site]:
    """London and Cape Town in new databases, each on its server."""
    for name in ("london", "capetown"):
        made = database(site=name)
        yield site_on(made.server, name, made.name)


def spark_of(request: pytest.FixtureRequest) -> Callable[[], SparkSession]:
    """The session's Spark, which starts when it is first called."""
    return lambda: request.getfixturevalue("spark")


@contextmanager
def two_empty_sites(server: Server) -> Iterator[tuple[Site, Site]]:
    """London and Cape Town in databases of their own, which are dropped at the end, with their slots."""
    with ExitStack() as ends:
        london, capetown = (_empty_site(server, name, ends) for name in ("london", "capetown"))
        yield london, capetown


def _empty_site(server: Server, name: str, ends: ExitStack) -> Site:
    database = f"test_{os.urandom(6).hex()}"
    server.create_database(database)
    ends.callback(server.drop_database, database)
    site = site_on(server, name, database)
    ends.callback(site.connection.close)
    ends.callback(site.drop_slots)
    return site


T = TypeVar("T")


def copied_sites(
    templates: TemplateDatabases,
    key: Hashable,
    captures: Mapping[str, Capture],
    provision: Callable[[Mapping[str, Site]], T],
    database: MakeDatabase,
) -> tuple[dict[str, Site], T]:
    """Copies of the sites that `provision` makes ready from empty databases, and what it returns.

    It is called once for a key and the sites' captures.
    """

    def sites_in(databases: Mapping[str, Database]) -> dict[str, Site]:
        return {
            name: site_on(each.server, name, each.name, by_log=captures[name] is Capture.LOG)
            for name, each in databases.items()
        }

    def provisioned(empty: MakeDatabase) -> Provisioned:
        databases = {name: empty(site=name) for name in captures}
        sites = sites_in(databases)
        with ExitStack() as ends:  # provisioning may be refused
            for site in sites.values():
                ends.callback(site.close)
            return Provisioned(databases, provision(sites))

    copies, result = templates.copied((key, *captures.items()), provisioned, database)
    sites = sites_in(copies)
    for site in sites.values():
        if site.by_log:
            site.read_own_log()
    return sites, result


@pytest.fixture
def capture(request: pytest.FixtureRequest) -> Capture:
    """How every site finds what its users change; by triggers where a test does not say it (`over_captures`)."""
    return Capture(getattr(request, "param", os.environ.get(CAPTURE, Capture.TRIGGERS)))


@pytest.fixture
def pair(
    request: pytest.FixtureRequest,
    templates: TemplateDatabases,
    database: MakeDatabase,
    capture: Capture,
) -> Iterator[MakePair]:
    """Call it with the statements that make both sites' tables; Spark starts only when a link needs it."""
    made: list[Pair] = []
    spark = spark_of(request)

    def make(*ddl: str) -> Pair:
        def provision(sites: Mapping[str, Site]) -> tuple[ReplicatedTable, ...]:
            return begin(sites["london"], sites["capetown"], ddl, spark).tables

        captures = dict.fromkeys(("london", "capetown"), capture)
        sites, tables = copied_sites(templates, ("pair", ddl), captures, provision, database)
        made.append(Pair(sites["london"], sites["capetown"], tables, spark))
        return made[-1]

    yield make
    for each in made:
        for site in each.sites:
            site.close()


@pytest.fixture(name="capture", params=["log", "triggers"])
def each_capture(request: pytest.FixtureRequest) -> str:
    """How a replication finds what the publisher's users change. `make test` runs one of the two."""
    return str(request.param)


@pytest.fixture
def prepared_pair(
    request: pytest.FixtureRequest, templates: TemplateDatabases, database: MakeDatabase, capture: Capture
) -> Iterator[MakePreparedPair]:
    """Call it with a name, the statements that make both sites' tables, and a function that prepares the pair.

    The function is called once a name. Every later call gets copies of the pair that it returned.
    """
    made: list[Pair] = []
    spark = spark_of(request)

    def make(name: str, ddl: Sequence[str], prepare: Callable[[Pair], Pair]) -> Pair:
        def provision(sites: Mapping[str, Site]) -> Pair:
            return prepare(begin(sites["london"], sites["capetown"], ddl, spark))

        captures = dict.fromkeys(("london", "capetown"), capture)
        sites, prepared = copied_sites(templates, ("prepared", name, *ddl), captures, provision, database)
        made.append(replace(prepared, spark=spark, **sites))
        return made[-1]

    yield make
    for each in made:
        for site in each.sites:
            site.close()


@pytest.fixture
def replicated(templates: TemplateDatabases, database: MakeDatabase) -> Iterator[Callable[..., Replicated]]:
    """Call it with the tables' statements and names; Cape Town replays London's transactions.

    Each site may have statements of its own, by its name.
    """
    made: list[Replicated] = []
    ends = ExitStack()

    def make(ddl: Statements, *tables: str | ReplicatedTable, **settings: Any) -> Replicated:
        def provision(sites: Mapping[str, Site]) -> Replicated:
            return begin_replicated(sites["london"], sites["capetown"], ddl, *tables, **settings)

        # The name of a slot is unique in a server: two replications of one test are not copies of one template.
        key = ("replicated", len(made), repr((ddl, tables, settings)))
        captures = dict.fromkeys(("london", "capetown"), Capture.TRIGGERS)
        sites, original = copied_sites(templates, key, captures, provision, database)
        made.append(replace(original, settings=settings, **sites))
        for site in sites.values():
            ends.callback(site.connection.close)
            ends.callback(site.drop_slots)
        return made[-1]

    with ends:
        yield make


@pytest.fixture
def network(
    request: pytest.FixtureRequest,
    server_with_logins: Server,
    templates: TemplateDatabases,
    database: MakeDatabase,
    capture: Capture,
) -> Iterator[MakeNetwork]:
    """Call it with a topology and the statements that make every site's tables, and with sites whose capture is
    another one."""
    made: list[Network] = []
    spark = spark_of(request)

    def make(topology: Topology, *ddl: str, **captures: Capture) -> Network:
        def capture_at(name: str) -> Capture:
            return captures.get(name, capture)

        def make_site(name: str) -> Site:
            made = database(site=name)
            return site_on(made.server, name, made.name, by_log=capture_at(name) is Capture.LOG)

        def provision(sites: Mapping[str, Site]) -> tuple[ReplicatedTable, ...]:
            return begin_network(topology, sites.__getitem__, ddl, spark).tables

        chosen = {name: capture_at(name) for name in topology.sites}
        sites, tables = copied_sites(templates, (topology, ddl), chosen, provision, database)
        made.append(Network(topology, sites, tables, spark, make_site))
        return made[-1]

    yield make
    for each in made:
        for site in each.sites:
            site.close()


@pytest.fixture
def prepared_network(
    request: pytest.FixtureRequest, templates: TemplateDatabases, database: MakeDatabase
) -> Iterator[MakePreparedNetwork]:
    """Call it with a key, and with a function that makes and prepares a network.

    The function is called once a key. Every later call gets copies of the network that it returned. All sites have
    triggers.
    """
    made: list[Network] = []
    spark = spark_of(request)

    def site_in(name: str, within: Database) -> Site:
        return site_on(within.server, name, within.name)

    def make(key: Hashable, prepare: Callable[[MakeNetwork], Network]) -> Network:
        def provisioned(empty: MakeDatabase) -> Provisioned:
            databases: dict[str, Database] = {}

            def make_site(name: str) -> Site:
                databases[name] = empty(site=name)
                return site_in(name, databases[name])

            prepared = prepare(lambda topology, *ddl: begin_network(topology, make_site, ddl, spark))
            for site in prepared.sites:
                site.close()
            return Provisioned(databases, prepared)

        copies, prepared = templates.copied(("prepared", key), provisioned, database)
        sites = {name: site_in(name, copy) for name, copy in copies.items()}
        made.append(
            replace(
                prepared,
                by_name=sites,
                spark=spark,
                make_site=lambda name: site_in(name, database(site=name)),
                reports=[*prepared.reports],
            )
        )
        return made[-1]

    yield make
    for each in made:
        for site in each.sites:
            site.close()


@pytest.fixture
def sites(server_with_logins: Server, database: MakeDatabase) -> Iterator[Bare]:
    """On one server, whose roles the tests of provisioning make."""
    both = Bare(*(site_on(server_with_logins, name, database().name) for name in ("london", "capetown")))
    yield both
    for site in both.sites:
        site.connection.close()


@pytest.fixture
def shops(
    request: pytest.FixtureRequest,
    server_with_logins: Server,
    templates: TemplateDatabases,
    database: MakeDatabase,
) -> Iterator[MakeShops]:
    """Call it once; Spark starts only when a link needs it."""
    names = ("london", "capetown")
    made: list[Site] = []
    spark = spark_of(request)

    def make(**changed: Any) -> Shops:
        def opened(sites: Mapping[str, Site]) -> Shops:
            return open_shops(sites["london"], sites["capetown"], spark, **changed)

        if changed:  # no two tests change the same
            sites = dict(zip(names, two_sites(database), strict=True))
            both = opened(sites)
        else:
            captures = dict.fromkeys(names, Capture.TRIGGERS)
            sites, both = copied_sites(templates, "shops", captures, opened, database)
        made.extend(sites.values())
        return both.on(replace(both.pair, spark=spark, **sites))

    yield make
    for site in made:
        site.connection.close()


@pytest.fixture
def copies(
    request: pytest.FixtureRequest, server_with_logins: Server, database: MakeDatabase
) -> Iterator[Copies]:
    """London with ten flights; Cape Town empty; nothing provisioned."""
    london, capetown = two_sites(database)
    london.run(*FLIGHTS)
    yield Copies(london, capetown, spark_of(request))
    for site in (london, capetown):
        site.connection.close()


@pytest.fixture
def late(copies: Copies) -> Copies:
    """An incremental snapshot `late` of the flights that are more than 50 late, filled."""
    copies.define(
        "late", "incremental", "public.flight", "public.late", columns=("delay",), where="delay > 50"
    )
    copies.provision()
    assert counts(copies.refresh("late")) == (5, 0, 0, 0)
    return copies


MakeUnlike = Callable[..., Pair]


@pytest.fixture
def unlike(
    request: pytest.FixtureRequest,
    server_with_logins: Server,
    database: MakeDatabase,
    tmp_path: Path,
) -> Iterator[MakeUnlike]:
    """Call it with the table entry and each site's own statements."""
    made: list[Pair] = []

    def make(entries: str, london_ddl: str, capetown_ddl: str) -> Pair:
        london, capetown = two_sites(database)
        london.run(london_ddl)
        capetown.run(capetown_ddl)
        tables = configured(entries, tmp_path)
        made.append(begin_mapped(london, capetown, tables, spark_of(request)))
        return made[-1]

    yield make
    for each in made:
        for site in each.sites:
            site.connection.close()


@pytest.fixture(scope="session")
def provisioned_targets(server_with_logins: Server) -> Iterator[MakeWritten]:
    """Call it with the statements that make a site's tables, and the configuration of the first one. The same call
    returns the same site, with all that it holds."""
    made: dict[str, WrittenSite] = {}

    def make(*ddl: str, by_log: bool = False, **fields: object) -> WrittenSite:
        called = repr((ddl, by_log, sorted(fields.items())))
        if called not in made:
            name = f"test_{os.urandom(6).hex()}"
            server_with_logins.create_database(name)
            made[called] = begin_written(
                site_on(server_with_logins, TARGET, name, by_log=by_log), ddl, **fields
            )
        return made[called]

    yield make
    for each in made.values():
        each.close()
        server_with_logins.drop_database(each.site.database)


@pytest.fixture
def written_site(provisioned_targets: MakeWritten) -> MakeWritten:
    """The same, emptied."""

    def make(*ddl: str, **fields: Any) -> WrittenSite:
        made = provisioned_targets(*ddl, **fields)
        made.empty()
        return made

    return make
