"""The rights that an installer that is no superuser must be given once, so that it provisions alone from then on.

A superuser runs the script. It makes a role, grants and hands over, and runs nothing that others have put into
tables: no statement reads or writes a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.contract.refusal import Refusal
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts import privileges
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, one, rows
from concord.databases.postgresql.facts.own_schema import PUBLICATION, SCHEMAS
from concord.databases.postgresql.facts.privileges import Absent, Grant, Kind
from concord.databases.postgresql.hooks import added_rows
from concord.databases.postgresql.log import publication
from concord.databases.postgresql.replication.needed_grants import needed_grants as needed_for_replications
from concord.databases.postgresql.replication.provision import Replications
from concord.databases.postgresql.sites import owner
from concord.databases.postgresql.sites import state as site_state
from concord.databases.postgresql.sites.grants import Logins, connect, of_types, usage
from concord.databases.postgresql.sites.owner import Standing
from concord.databases.postgresql.sites.state import SiteState
from concord.databases.postgresql.snapshots.provision import Ends
from concord.databases.postgresql.snapshots.provision import needed_grants as needed_for_copies
from concord.tables.replication_set import ReplicatedTable, TableName


@dataclass(frozen=True, slots=True)
class Admission:
    """The rights that one installer lacks at one site."""

    site: str
    installer: str
    lacks: tuple[str, ...]  #: each a verb and its object
    problems: tuple[Refusal, ...]  #: what no installer must be given
    statements: tuple[str, ...]  #: what gives the rest

    @property
    def refusal(self) -> str:
        """For a person: what is lacking, and who gives it."""
        return (
            f"{self.site}: {self.installer} cannot {', nor '.join(self.lacks)}; let a superuser run the output of"
            f" `provision --print-sql` once, and {self.installer} can provision from then on"
        )


@dataclass(frozen=True, slots=True)
class _Relation:
    """One whose owner the installer has to act for, and does not."""

    name: TableName
    is_view: bool
    owner: str
    is_superuser: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parts of a site's configuration beside the tables that its links carry."""

    logins: Logins
    log_reader: str
    copies: Sequence[Ends]
    replications: Replications


def read(connection: Connection, state: SiteState, wanted: Wanted) -> Admission:
    """Reads the catalogue alone: for that no right is needed."""
    user, copies = state.facts.user, _copies_at(state.site, wanted.copies)
    standing = owner.read(connection, state.facts, state.owner)
    altered = [*_altered(state), *_views(state), *copies, *wanted.replications.altered]
    others = _owned_by_others(connection, altered)
    published = _published_by_others(connection, wanted.replications)
    given = _lacked_grants(connection, state, wanted)
    acts_for = sorted({each.owner for each in others if not each.is_view and not each.is_superuser})
    lacks = (
        *_of_concord(connection, standing),
        *_of_owners(others),
        *(f"change the publication {name}, which {role} owns" for name, role in published.items()),
        *_of_grants(user, given, others),
    )
    inherit = " WITH INHERIT TRUE" if state.facts.version >= owner.OPTIONS else ""
    return Admission(
        site=state.site,
        installer=user,
        lacks=lacks,
        problems=tuple(_problems(state, wanted, others)),
        statements=(
            *owner.statements(state.owner, user, state.facts.version),
            *owner.handed_over(state.owner, user),
            *(f"GRANT {quote(each)} TO {quote(user)}{inherit}" for each in acts_for),
            *(
                f"ALTER VIEW {_sql(each.name)} OWNER TO {quote(user)}"
                for each in others
                if each.is_view and each.is_superuser
            ),
            *(f"ALTER PUBLICATION {quote(name)} OWNER TO {quote(user)}" for name in published),
            *(each.sql for each in given),
        ),
    )


def _shadows(state: SiteState) -> Iterator[Shadow]:
    for wanted in state.wanted:
        if (table := state.table(wanted)) is not None:
            yield Shadow.of(wanted, state.site, table)


def _altered(state: SiteState) -> Iterator[TableName]:
    """The tables that get triggers, and the sequences that are held to their shares."""
    for table in state.tables.values():
        yield table.name
        yield from table.sequences


def _views(state: SiteState) -> list[TableName]:
    return [
        each.marks.view for each in _shadows(state) if each.marks is not None and each.marks.view is not None
    ]


def _copies_at(site: str, copies: Sequence[Ends]) -> list[TableName]:
    """The destinations of snapshots."""
    return [each.snapshot.table for each in copies if each.snapshot.target == site]


def _owned_by_others(connection: Connection, names: Sequence[TableName]) -> list[_Relation]:
    """Those of them that exist, and whose owners the installer may not act for."""
    if not names:
        return []
    found = rows(
        connection,
        f"""
SELECT n.nspname, c.relname, c.relkind = 'v', r.rolname, r.rolsuper
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_roles r ON r.oid = c.relowner
 WHERE {_named(names)} AND NOT pg_has_role(r.oid, 'USAGE') ORDER BY 1, 2""",
    )
    return [_Relation(TableName(schema_name=schema, name=name), *rest) for schema, name, *rest in found]


def _named(names: Sequence[TableName]) -> str:
    listed = ", ".join(f"({literal(each.schema_name)}, {literal(each.name)})" for each in names)
    return f"(n.nspname, c.relname) IN ({listed})"


def _published_by_others(connection: Connection, replications: Replications) -> dict[str, str]:
    """The publications to be changed that a superuser made, for whom the installer may not act; each with its owner."""
    names = ", ".join(["NULL", *map(literal, replications.deviating(connection))])
    found = rows(
        connection,
        "SELECT p.pubname, r.rolname FROM pg_publication p JOIN pg_roles r ON r.oid = p.pubowner"
        f" WHERE p.pubname IN ({names}) AND r.rolsuper AND NOT pg_has_role(r.oid, 'USAGE') ORDER BY 1",
    )
    return dict(found)


def _lacked_grants(connection: Connection, state: SiteState, wanted: Wanted) -> list[Grant]:
    """The installer's needs of schemas and of the database. The others' needs that they lack, and that the
    installer cannot give."""
    user, logins = state.facts.user, wanted.logins
    needed = [*site_state.needed_grants(state, logins, state.wanted)]
    for each in wanted.copies:
        needed += needed_for_copies(each, state.site, logins)
    needed += needed_for_replications(wanted.replications, logins, wanted.log_reader)
    if wanted.log_reader and any(state.site in each.by_log for each in state.wanted):
        needed.append(connect(wanted.log_reader, state.facts.database))
    carried = [*state.wanted, *(each for one in wanted.replications.replications for each in one.tables)]
    needed += added_rows.needed_grants(connection, state.site, carried, logins.applier)
    outside = [each for each in needed if each.name[0] not in SCHEMAS]
    to_give = _missing(connection, outside)
    not_ours = privileges.missing(connection, [each.by(user) for each in to_give])
    found = _missing(connection, [*_of_installer(connection, state, wanted)])
    return list(dict.fromkeys([*found, *(each for each in to_give if each.by(user) in not_ours)]))


def _missing(connection: Connection, grants: Sequence[Grant]) -> list[Grant]:
    """The rights of these that the script can grant: it makes the role, and `provision` makes the objects."""
    found = privileges.missing(connection, grants).values()
    return [replace(each, absent=None) for each in found if each.absent is not Absent.OBJECT]


def _of_installer(connection: Connection, state: SiteState, wanted: Wanted) -> Iterator[Grant]:
    """To see the tables, and to make views, destinations and publications that are not there yet, and shadow tables,
    which have the types of keys."""
    user, made = state.facts.user, [*_views(state), *_copies_at(state.site, wanted.copies)]
    for schema in sorted({each.schema_name for each in [*state.tables, *wanted.replications.tables, *made]}):
        yield usage(user, schema)
    begins = any(state.site in each.by_log for each in state.wanted) and not publication.is_whole(
        connection, PUBLICATION
    )
    if begins or wanted.replications.deviating(connection):
        yield Grant(user, ("CREATE",), Kind.DATABASE, (state.facts.database,))
    for schema in sorted({each.schema_name for each in _absent(connection, made)}):
        yield Grant(user, ("CREATE",), Kind.SCHEMA, (schema,))
    for shadow in _shadows(state):
        yield from of_types([each for each in shadow.table.columns if each.name in shadow.key], user)


def _absent(connection: Connection, names: Sequence[TableName]) -> list[TableName]:
    """Those of them that do not exist."""
    if not names:
        return []
    query = "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    there = set(rows(connection, f"{query} WHERE {_named(names)}"))
    return [each for each in names if (each.schema_name, each.name) not in there]


def _of_concord(connection: Connection, standing: Standing) -> Iterator[str]:
    if not (standing.usable or standing.givable):
        yield f"make the role {standing.role}, which is to own what Concord keeps, nor act as it"
    if not standing.movable:
        yield f"hand over what {', '.join(standing.others)} owns of Concord's"
    absent = " OR ".join(f"to_regnamespace({literal(each)}) IS NULL" for each in SCHEMAS)
    if one(connection, f"SELECT ({absent}) AND NOT has_database_privilege(current_database(), 'CREATE')")[0]:
        yield f"create the schemas {' and '.join(SCHEMAS)}"


def _of_owners(others: Sequence[_Relation]) -> Iterator[str]:
    for role in sorted({each.owner for each in others if not each.is_superuser or each.is_view}):
        yield f"act for {role}, who owns {', '.join(str(each.name) for each in others if each.owner == role)}"


def _of_grants(user: str, given: Sequence[Grant], others: Sequence[_Relation]) -> Iterator[str]:
    """The rights of these that do not come with the owners' rights."""
    come = {(each.name.schema_name, each.name.name) for each in others}
    for each in given:
        name = ".".join(each.name)
        if each.kind is Kind.DATABASE and "CREATE" in each.privileges:
            yield f"create a publication in the database {name}"
        elif each.kind is Kind.TYPE and each.role == user:
            yield f"use the type {name}"
        elif each.name not in come:
            yield f"give {each.role} {', '.join(each.privileges)} on {each.kind.lower()} {name}"


def _problems(state: SiteState, wanted: Wanted, others: Sequence[_Relation]) -> Iterator[Refusal]:
    for each in others:
        if each.is_superuser and not each.is_view:
            line = (
                f"{state.site}: {each.name} belongs to the superuser {each.owner}, and who acts for a superuser is one;"
                f" let an ordinary role own it (ALTER TABLE … OWNER TO …), for which {state.facts.user} acts"
            )
            yield Refusal(line, tuple(_tables_with(each.name, state, wanted)), _copies_of(each.name, wanted))


def _tables_with(relation: TableName, state: SiteState, wanted: Wanted) -> list[str]:
    """The replicated tables that are this relation, or are fed by it."""
    replayed = (
        found for each in wanted.replications.replications for found in wanted.replications.existing(each)
    )
    carried = [(each, state.table(each)) for each in state.wanted]
    tables: list[tuple[ReplicatedTable, Table | None]] = [*carried, *replayed]
    found = [each.name for each, table in tables if table and relation in (table.name, *table.sequences)]
    return list(dict.fromkeys(found))


def _copies_of(relation: TableName, wanted: Wanted) -> tuple[str, ...]:
    return tuple(each.snapshot.name for each in wanted.copies if each.snapshot.table == relation)


def _sql(name: TableName) -> str:
    return qualified(name.schema_name, name.name)
