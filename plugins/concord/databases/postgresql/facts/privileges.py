"""A login's rights as data: the statement that grants one, and one question that says which of many are missing."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from psycopg.rows import dict_row

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.facts.connection import Connection, answers
from concord.messages.errors import PrivilegeMissing


class Kind(StrEnum):
    """The kind of object that a privilege is on, as GRANT calls it."""

    SCHEMA = "SCHEMA"
    TABLE = "TABLE"
    SEQUENCE = "SEQUENCE"
    FUNCTION = "FUNCTION"  #: by its name alone: Concord overloads none
    PROCEDURE = "PROCEDURE"  #: of users', which has its name for itself
    TYPE = "TYPE"
    DATABASE = "DATABASE"
    PARAMETER = "PARAMETER"


class Absent(StrEnum):
    """The objects that are not there, so that nothing can be held or granted."""

    ROLE = "role"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Grant:
    """Privileges of one login on one object; of a table, on some of its columns where these are named."""

    role: str
    privileges: tuple[str, ...]
    kind: Kind
    name: tuple[str, ...]  #: its parts, as they are: ("ops", "parent")
    columns: tuple[str, ...] = ()
    absent: Absent | None = None  #: known of what is missing alone

    @property
    def sql(self) -> str:
        """The statement; it may be repeated."""
        columns = f" ({', '.join(map(quote, self.columns))})" if self.columns else ""
        asked = ", ".join(f"{privilege}{columns}" for privilege in self.privileges)
        return f"GRANT {asked} ON {self.kind} {'.'.join(map(quote, self.name))} TO {quote(self.role)}"

    def by(self, installer: str) -> Grant:
        """The right to grant it."""
        privileges = tuple(f"{each} WITH GRANT OPTION" for each in self.privileges)
        return replace(self, role=installer, privileges=privileges)

    @property
    def lacked(self) -> str:
        """For a person: what the login has not got, and what gives it."""
        columns = f" ({', '.join(self.columns)})" if self.columns else ""
        on = f"{self.kind.lower()} {'.'.join(self.name)}"
        asked = f"{', '.join(self.privileges)}{columns}"
        if self.absent is Absent.ROLE:
            return f"there is no role {self.role}, which needs {asked} on {on}; run `provision`"
        if self.absent is Absent.OBJECT:
            return f"there is no {on}{columns}, on which {self.role} needs {asked}; run `provision`"
        return f"the login {self.role} lacks {asked} on {on}; {self.sql}"


def missing(connection: Connection, grants: Sequence[Grant]) -> dict[Grant, Grant]:
    """By each grant of which something is missing, that; in one round trip. Anybody may ask it of everybody."""
    return of(grants, answers(connection, query(grants), row_factory=dict_row)[0])


def refuse_missing(site: str, lacked: Collection[Grant]) -> None:
    """Raises PrivilegeMissing, each grant a line."""
    if lacked:
        lines = "\n".join(f"{site}: {each.lacked}" for each in lacked)
        either = "" if any(each.absent for each in lacked) else ", or these statements"
        raise PrivilegeMissing(f"{lines}\nRun `provision`{either}; nothing was written")


#: Does a role `r` hold the privilege of a right `w`? NULL where the object does not exist. A table or sequence is `c`,
#: the schema of the object `s`.
_HELD = {
    Kind.SCHEMA: "has_schema_privilege(r.oid, s.oid, w.privilege)",
    Kind.TABLE: """
           CASE WHEN w.column_name IS NULL THEN has_table_privilege(r.oid, c.oid, w.privilege)
                ELSE (SELECT has_column_privilege(r.oid, c.oid, attnum, w.privilege)
                        FROM pg_attribute WHERE attrelid = c.oid AND attname = w.column_name) END""",
    Kind.SEQUENCE: "has_sequence_privilege(r.oid, c.oid, w.privilege)",
    Kind.FUNCTION: """(SELECT bool_and(has_function_privilege(r.oid, oid, w.privilege))
                                 FROM pg_proc WHERE pronamespace = s.oid AND proname = w.name)""",
    Kind.PROCEDURE: """(SELECT bool_and(has_function_privilege(r.oid, oid, w.privilege))
                                  FROM pg_proc WHERE pronamespace = s.oid AND proname = w.name)""",
    Kind.TYPE: """(SELECT has_type_privilege(r.oid, oid, w.privilege)
                             FROM pg_type WHERE typnamespace = s.oid AND typname = w.name)""",
    Kind.DATABASE: """(SELECT has_database_privilege(r.oid, oid, w.privilege)
                                 FROM pg_database WHERE datname = w.name)""",
    Kind.PARAMETER: "has_parameter_privilege(r.oid, w.name, w.privilege)",
}


class _Right(NamedTuple):
    """One privilege of a grant, on one column where the grant names columns."""

    place: int  #: of the grant
    role: str
    kind: Kind
    space: str
    name: str
    column_name: str | None
    privilege: str


def _rights(grants: Sequence[Grant]) -> list[_Right]:
    return [
        _Right(place, grant.role, grant.kind, grant.name[0], grant.name[-1], column, privilege)
        for place, grant in enumerate(grants)
        for column in grant.columns or (None,)
        for privilege in grant.privileges
    ]


def query(grants: Sequence[Grant]) -> str:
    """A row for each privilege that is missing: which grant's (its place), which column's, and what is not there.

    Objects are looked up in the catalogue: a name would be refused to whoever may not use its schema. Only the kinds
    that occur are in the query, since planning it takes as long as its work.
    """
    rights = _rights(grants)
    if not rights:
        return "SELECT 0 AS place, '' AS privilege, '' AS column_name, '' AS absent WHERE false"
    listed = ", ".join(
        f"json_array_elements_text({literal(json.dumps(column))})" for column in zip(*rights, strict=True)
    )
    held = "\n         ".join(
        f"WHEN '{kind}' THEN {_HELD[kind]}" for kind in sorted({each.kind for each in rights})
    )
    return f"""
SELECT place::int AS place, privilege, column_name,
       CASE WHEN role IS NULL THEN '{Absent.ROLE}' WHEN held IS NULL THEN '{Absent.OBJECT}' END AS absent
  FROM (
SELECT w.place, w.privilege, w.column_name, r.oid AS role,
       CASE w.kind
         {held} END AS held
  FROM ROWS FROM ({listed})
    AS w ({", ".join(_Right._fields)})
  LEFT JOIN pg_roles r ON r.rolname = w.role
  LEFT JOIN pg_namespace s ON s.nspname = w.space
  LEFT JOIN pg_class c ON w.kind IN ('TABLE', 'SEQUENCE') AND c.relnamespace = s.oid AND c.relname = w.name
OFFSET 0) asked  -- or it would be planned once for each mention of `held`
 WHERE held IS NOT TRUE"""


def of(grants: Sequence[Grant], found: Iterable[dict[str, Any]]) -> dict[Grant, Grant]:
    """By each grant of which the rows of `query` say that something is missing, no more than that."""
    lacked: dict[int, tuple[set[str], set[str], set[str]]] = {}
    for row in found:
        privileges, columns, absent = lacked.setdefault(row["place"], (set(), set(), set()))
        privileges.add(row["privilege"])
        columns.add(row["column_name"])
        absent.update({row["absent"]} - {None})
    return {
        grants[place]: replace(
            grants[place],
            privileges=tuple(each for each in grants[place].privileges if each in privileges),
            columns=tuple(each for each in grants[place].columns if each in columns),
            absent=next(map(Absent, absent), None),
        )
        for place, (privileges, columns, absent) in sorted(lacked.items())
    }
