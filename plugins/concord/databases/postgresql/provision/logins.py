"""The script that a superuser runs once in a database: its logins, and what none of them can give itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from concord.databases.contract.logins import APPLIER, INSTALLER, LOG_READER, LOGINS, Wanted, name_of
from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.facts.scram import verifier
from concord.databases.postgresql.sites.grants import APPLIER_SETTINGS
from concord.databases.postgresql.sites.owner import ATTRIBUTES, other_members, role
from concord.messages.errors import ParametersRefused
from concord.values.identifier import TableName

_TAG = "$concord$"
_VARIABLES = """\
  owner text;
  others text;
  remedy text;
  made text[] = '{}';
"""
_USE_IT = "Use the folder whose script made them. Or run this first, which locks that folder out: "
_REPORT = """\
  RAISE NOTICE 'logins made: %', CASE made
    WHEN '{}' THEN 'none; they exist, with the passwords of this script' ELSE array_to_string(made, ', ') END;"""


def script(wanted: Wanted) -> str:
    """One statement: it does all or nothing, whatever program runs it, and may be run again. Needs PostgreSQL 15.

    Raises ParametersRefused for a name that it cannot hold.
    """
    if any(_TAG in name for name in (wanted.database, *map(str, wanted.tables))):
        raise ParametersRefused(f"a name holds {_TAG}, which no script of Concord's can hold")
    body = "\n".join(_steps(wanted))
    return f"DO {_TAG}\nDECLARE\n{_VARIABLES}BEGIN\n{body}\nEND\n{_TAG};\n"


def _steps(wanted: Wanted) -> Iterator[str]:
    database, owner = quote(wanted.database), role(wanted.database)
    names = {login: name_of(login, wanted.database) for login in wanted.passwords}
    verifiers = {login: verifier(password) for login, password in wanted.passwords.items()}
    installer = names[INSTALLER]
    three = ", ".join(quote(names[login]) for login in LOGINS)
    yield "  SET LOCAL search_path = '';  -- functions of others cannot stand in for PostgreSQL's"
    yield from _right_place(wanted.database)
    yield "\n  -- The folder of another script goes on working: its logins keep their passwords and rights."
    yield from _leaves_another_folder(
        {names[login]: each for login, each in verifiers.items()}, owner, installer
    )
    yield "\n  -- The passwords are stored as SCRAM verifiers: no statement here holds one."
    for login, stored in verifiers.items():
        yield from _made(names[login], "", f"    made := made || {literal(names[login])}::text;")
        reads_log = " REPLICATION" if login == LOG_READER else ""
        yield f"  ALTER ROLE {quote(names[login])} LOGIN{reads_log} PASSWORD {literal(stored)};"
    if LOG_READER in names:
        yield "  -- The log reader reads every table of the server: let pg_hba.conf admit it from one machine."
    yield "\n  -- Owns what Concord keeps in this database. Nobody logs in as it; the installer acts for it."
    yield from _made(owner, f" {ATTRIBUTES}")
    yield from _membership(owner, installer)
    yield "\n  -- The installer makes Concord's schemas, and acts for the owners of the tables."
    yield f"  GRANT CREATE ON DATABASE {database} TO {quote(installer)};"
    yield from _acts_for_the_owners(wanted.tables, installer)
    yield "\n  -- Given here, since DROP OWNED would leave what the installer has given."
    yield f"  GRANT CONNECT, TEMPORARY ON DATABASE {database} TO {three};"
    if LOG_READER in names:
        yield f"  GRANT CONNECT ON DATABASE {database} TO {quote(names[LOG_READER])};"
    for schema in sorted({table.schema_name for table in wanted.tables}):
        yield f"  GRANT USAGE ON SCHEMA {quote(schema)} TO {three}, {quote(owner)};"
    yield "\n  -- Only a superuser can grant these: the applier's writes fire no trigger, and give way to users."
    yield f"  GRANT SET ON PARAMETER {', '.join(APPLIER_SETTINGS)} TO {quote(names[APPLIER])};"
    yield f"\n{_REPORT}"


def _right_place(database: str) -> Iterator[str]:
    yield f"  IF current_database() <> {literal(database)} THEN"
    yield f"    RAISE EXCEPTION 'this is database %, and the script is for %', current_database(), {literal(database)};"
    yield "  END IF;"


def _leaves_another_folder(verifiers: Mapping[str, str], owner: str, installer: str) -> Iterator[str]:
    """A login without a password gets this script's: so a superuser hands a login over to another folder."""
    given = ",\n".join(f"      ({literal(name)}, {literal(stored)})" for name, stored in verifiers.items())
    yield "  SELECT string_agg(quote_ident(login), ', '),"
    yield "         string_agg('ALTER ROLE ' || quote_ident(login) || ' PASSWORD NULL;', ' ')"
    yield "    INTO others, remedy"
    yield f"    FROM (VALUES\n{given}) given(login, verifier)"
    yield "    JOIN pg_authid ON rolname = login AND rolpassword <> verifier;"
    yield "  IF others IS NOT NULL THEN"
    yield "    RAISE EXCEPTION '% exist, with other passwords than this script gives',"
    yield f"      others USING HINT = {literal(_USE_IT)} || remedy;"
    yield "  END IF;"
    yield f"  SELECT * INTO others, remedy FROM ({other_members(owner, installer)}) members;"
    yield "  IF others IS NOT NULL THEN"
    yield "    RAISE EXCEPTION '% may act as %: another folder serves this database',"
    yield f"      others, {literal(owner)} USING HINT = {literal(_USE_IT)} || remedy;"
    yield "  END IF;"


def _made(name: str, attributes: str = "", *then: str) -> Iterator[str]:
    yield f"  IF to_regrole({literal(quote(name))}) IS NULL THEN"
    yield f"    CREATE ROLE {quote(name)}{attributes};"
    yield from then
    yield "  END IF;"


def _membership(name: str, installer: str) -> Iterator[str]:
    """From PostgreSQL 16 on, a membership says itself whether it gives the role's rights."""
    yield f"  EXECUTE {literal(f'GRANT {quote(name)} TO {quote(installer)}')} || CASE WHEN"
    yield (
        "    current_setting('server_version_num')::int >= 160000 THEN ' WITH INHERIT TRUE, SET TRUE' ELSE '' END;"
    )


def _acts_for_the_owners(tables: Sequence[TableName], installer: str) -> Iterator[str]:
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
        yield f"  IF NOT pg_has_role({literal(installer)}, owner::regrole::oid, 'MEMBER') THEN"
        yield f"    EXECUTE 'GRANT ' || owner || {literal(f' TO {quote(installer)}')};"
        yield "  END IF;"
