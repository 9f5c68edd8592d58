"""The script that a superuser runs once in a database: its logins, and what none of them can give itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concord.databases.contract.logins import APPLIER, INSTALLER, LOG_READER, LOGINS, Wanted
from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.facts.scram import verifier
from concord.databases.postgresql.sites.grants import APPLIER_SETTINGS
from concord.databases.postgresql.sites.owner import ATTRIBUTES, role
from concord.messages.errors import ParametersRefused
from concord.values.identifier import TableName

_TAG = "$concord$"


def script(wanted: Wanted) -> str:
    """One statement: it does all or nothing, whatever program runs it, and may be run again. Needs PostgreSQL 15.

    Raises ParametersRefused for a name that it cannot hold.
    """
    if any(_TAG in name for name in (wanted.database, *map(str, wanted.tables))):
        raise ParametersRefused(f"a name holds {_TAG}, which no script of Concord's can hold")
    body = "\n".join(_steps(wanted))
    return f"DO {_TAG}\nDECLARE\n  owner text;\nBEGIN\n{body}\nEND\n{_TAG};\n"


def _steps(wanted: Wanted) -> Iterator[str]:
    database = quote(wanted.database)
    yield "  SET LOCAL search_path = '';  -- functions of others cannot stand in for PostgreSQL's"
    yield from _right_place(wanted.database)
    yield "\n  -- The passwords are stored as SCRAM verifiers: no statement here holds one."
    for login, password in wanted.passwords.items():
        yield from _made(login)
        reads_log = " REPLICATION" if login == LOG_READER else ""
        yield f"  ALTER ROLE {login} LOGIN{reads_log} PASSWORD {literal(verifier(password))};"
    if LOG_READER in wanted.passwords:
        yield f"  -- {LOG_READER} reads every table of the server: let pg_hba.conf admit it from one machine."
    yield "\n  -- Owns what Concord keeps in this database. Nobody logs in as it; the installer acts for it."
    yield from _made(role(wanted.database), f" {ATTRIBUTES}")
    yield from _membership(quote(role(wanted.database)))
    yield "\n  -- The installer makes Concord's schemas, and acts for the owners of the tables."
    yield f"  GRANT CREATE ON DATABASE {database} TO {INSTALLER};"
    yield from _acts_for_the_owners(wanted.tables)
    yield "\n  -- Given here, since DROP OWNED would leave what the installer has given."
    yield f"  GRANT CONNECT, TEMPORARY ON DATABASE {database} TO {', '.join(LOGINS)};"
    if LOG_READER in wanted.passwords:
        yield f"  GRANT CONNECT ON DATABASE {database} TO {LOG_READER};"
    for schema in sorted({table.schema_name for table in wanted.tables}):
        yield f"  GRANT USAGE ON SCHEMA {quote(schema)} TO {', '.join(LOGINS)}, {quote(role(wanted.database))};"
    yield "\n  -- Only a superuser can grant these: the applier's writes fire no trigger, and give way to users."
    yield f"  GRANT SET ON PARAMETER {', '.join(APPLIER_SETTINGS)} TO {APPLIER};"


def _right_place(database: str) -> Iterator[str]:
    yield f"  IF current_database() <> {literal(database)} THEN"
    yield f"    RAISE EXCEPTION 'this is database %, and the script is for %', current_database(), {literal(database)};"
    yield "  END IF;"


def _made(name: str, attributes: str = "") -> Iterator[str]:
    yield f"  IF to_regrole({literal(quote(name))}) IS NULL THEN"
    yield f"    CREATE ROLE {quote(name)}{attributes};"
    yield "  END IF;"


def _membership(name: str) -> Iterator[str]:
    """From PostgreSQL 16 on, a membership says itself whether it gives the role's rights."""
    yield f"  EXECUTE {literal(f'GRANT {name} TO {INSTALLER}')} || CASE WHEN"
    yield (
        "    current_setting('server_version_num')::int >= 160000 THEN ' WITH INHERIT TRUE, SET TRUE' ELSE '' END;"
    )


def _acts_for_the_owners(tables: Sequence[TableName]) -> Iterator[str]:
    for table in tables:
        name = literal(qualified(table.schema_name, table.name))
        yield f"  IF to_regclass({name}) IS NULL THEN"
        yield (
            f"    RAISE EXCEPTION 'there is no table %; create it first, empty where it is to be loaded', {name};"
        )
        yield "  END IF;"
        yield f"  SELECT relowner::regrole INTO owner FROM pg_class WHERE oid = {name}::regclass;"
        yield "  IF (SELECT rolsuper FROM pg_roles WHERE oid = owner::regrole) THEN"
        yield f"    RAISE EXCEPTION '% belongs to the superuser %', {name}, owner USING HINT ="
        yield (
            "      'Let an ordinary role own it (ALTER TABLE … OWNER TO …): who acts for a superuser is a superuser.';"
        )
        yield "  END IF;"
        yield f"  IF NOT pg_has_role('{INSTALLER}', owner::regrole::oid, 'MEMBER') THEN"
        yield f"    EXECUTE 'GRANT ' || owner || ' TO {INSTALLER}';"
        yield "  END IF;"
