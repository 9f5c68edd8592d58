"""One database as a site: its logins, its tables, what is in it, and what its users do."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from concord.databases.postgresql.capture import by_log
from concord.databases.postgresql.facts.connection import connect, in_transaction
from concord.databases.postgresql.log import capture_slot
from concord.databases.postgresql.provision import site_refusals, site_statements
from concord.databases.postgresql.provision.site_log import site_log
from concord.databases.postgresql.rows import logged_edits
from concord.databases.postgresql.sites import state as site_state
from concord.jobs.site import Credentials, SiteAccess
from concord.tables.replication_set import ReplicatedTable, TableName
from tests.given import slots

READER, APPLIER, APPLICATION, PASSWORD = "link_reader", "link_applier", "an_application", "opens nothing"
#: A login that may read the log: every table of its cluster.
LOG_READER = "log_reader"

Rows = list[tuple[Any, ...]]


@dataclass
class Site:
    """One database and its superuser's open connection."""

    name: str
    host: str
    port: int
    database: str
    superuser: str
    password: str = field(repr=False)
    by_log: bool = False  #: its changes are read from its log
    connection: psycopg.Connection[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.connection = self.log_in(self.superuser)

    def credentials(self, user: str) -> Credentials:
        password = self.password if user == self.superuser else PASSWORD
        return Credentials(
            host=self.host, port=self.port, database=self.database, user=user, password=password
        )

    def log_in(self, user: str, *, autocommit: bool = True) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=self.host,
            port=self.port,
            dbname=self.database,
            user=user,
            password=self.credentials(user).password.get_secret_value(),
            autocommit=autocommit,
        )

    @property
    def access(self) -> SiteAccess:
        return SiteAccess(
            name=self.name,
            reader=self.credentials(READER),
            applier=self.credentials(APPLIER),
            log_reader=self.credentials(LOG_READER) if self.by_log else None,
        )

    def register(self) -> None:
        """Give versions to all that users have committed, however it is found."""
        if self.by_log:
            with connect(self.credentials(APPLIER)) as connection:
                logged_edits.register(self.credentials(LOG_READER), connection, in_transaction)

    def read_own_log(self) -> None:
        """Make the slot of a copied database, which the slot of its original does not serve."""
        capture_slot.create(self.credentials(LOG_READER))
        self.run(*by_log.begun_anew([], None))

    def close(self) -> None:
        """No slot keeps its database from being dropped."""
        if self.by_log:
            self.drop_slots()
        self.connection.close()

    def drop_slots(self) -> None:
        slots.drop(self.run)

    def run(self, *statements: str) -> None:
        """Edit the site as its users do, one transaction a statement."""
        for statement in statements:
            self.connection.execute(statement.encode())

    def rows(self, query: str) -> Rows:
        return self.connection.execute(query.encode()).fetchall()

    def value(self, query: str) -> Any:
        ((value,),) = self.rows(query)
        return value

    def as_application(self, *statements: str) -> None:
        """One transaction of a user who has rights on the replicated tables and on nothing of Concord."""
        self._as(APPLICATION, *statements)

    def as_applier(self, *statements: str) -> None:
        self._as(APPLIER, *statements)

    def _as(self, user: str, *statements: str) -> None:
        with self.log_in(user, autocommit=False) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def conflicts(self) -> list[dict[str, Any]]:
        """The conflict log, oldest first."""
        with self.connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            return cursor.execute("SELECT * FROM concord.conflict ORDER BY table_name, key").fetchall()

    def wait_for_the_links_sessions_to_end(self) -> None:
        mine = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            f" AND usename IN ('{READER}', '{APPLIER}')"
        )
        deadline = time.monotonic() + 100
        while self.value(mine):
            assert time.monotonic() < deadline, "a session of the link's does not end"
            time.sleep(0.02)

    def writes(self) -> dict[str, int]:
        """Rows written since the database was made, by table, as the database itself counts them."""
        self.wait_for_the_links_sessions_to_end()  # a session hands in its counts when it ends
        self.run("SELECT pg_stat_force_next_flush()")
        return dict(
            self.rows(
                "SELECT schemaname || '.' || relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables"
            )
        )

    @property
    def stored(self) -> set[tuple[str, str, int]]:
        """Each row outside staging by its table, its place and its writing transaction: no commit leaves it equal."""
        tables = self.rows(
            "SELECT format('%I.%I', schemaname, relname) FROM pg_stat_user_tables"
            " WHERE schemaname <> 'concord_staging'"
        )
        each = (f"SELECT '{table}', ctid::text, xmin::text::bigint FROM {table}" for (table,) in tables)
        return {(str(table), str(place), int(by)) for table, place, by in self.rows(" UNION ALL ".join(each))}

    def written_since(self, before: set[tuple[str, str, int]]) -> set[str]:
        """Tables outside staging of which some row is not as it was `stored`; the database's own counts come late."""
        return {table for table, _, _ in self.stored ^ before}


def create_logins(superuser: psycopg.Connection[Any]) -> None:
    for role in (READER, APPLIER, APPLICATION, LOG_READER):
        right = sql.SQL("REPLICATION" if role == LOG_READER else "")
        create = sql.SQL("CREATE ROLE {} LOGIN {} PASSWORD {}").format(
            sql.Identifier(role), right, sql.Literal(PASSWORD)
        )
        superuser.execute(create)


def provision_site(site: Site, tables: Sequence[ReplicatedTable]) -> None:
    seen = site_state.read_catalogue(site.connection, site.name, tables, time.time())
    state = site_state.with_memory(site.connection, seen, None)
    refused = list(site_refusals.of_links(site.connection, state, READER, APPLIER))
    assert not refused, refused
    log = site_log(state, site.credentials(site.superuser), site.credentials(LOG_READER))
    site_statements.provision(site.connection, state, READER, APPLIER, log=log)


def captured(tables: Sequence[ReplicatedTable], *sites: Site) -> tuple[ReplicatedTable, ...]:
    """The tables as these sites capture them."""
    return tuple(table.told_by_log([site.name for site in sites if site.by_log]) for table in tables)


def every_table(site: Site) -> tuple[ReplicatedTable, ...]:
    """All tables of the site, in the order they were made."""
    found = site.rows(
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relkind = 'r' AND n.nspname !~ '^(pg_|information_schema|concord)' ORDER BY c.oid"
    )
    return tuple(ReplicatedTable(table=TableName(schema_name=schema, name=name)) for schema, name in found)


def make_tables(site: Site, ddl: Sequence[str]) -> None:
    """Run the statements, and let the application at every table there is."""
    site.run(*ddl)
    for schema, table in {(t.table.schema_name, t.table.name) for t in every_table(site)}:
        grant = sql.SQL("GRANT USAGE ON SCHEMA {} TO {}; GRANT ALL ON {} TO {}").format(
            sql.Identifier(schema),
            sql.Identifier(APPLICATION),
            sql.Identifier(schema, table),
            sql.Identifier(APPLICATION),
        )
        site.connection.execute(grant)
