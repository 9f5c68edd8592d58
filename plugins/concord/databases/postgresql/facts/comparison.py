"""How a constraint compares values: by the operators and collations that the catalogue names for it.

A bare `=` is another question. Sessions of Concord look names up in pg_catalog alone, and the equality of a type such
as `citext` is defined elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concord.databases.contract.quoting import qualified, quote

Name = Sequence[str]  #: schema and name

#: The operator of every type of PostgreSQL's own.
EQUALS = ("pg_catalog", "=")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one column of a key."""

    operator: Name = EQUALS
    left: Name | None = None  #: the operator's type, where the column on its left has another one
    right: Name | None = None
    collation: Name | None = None
    nulls_meet: bool = False  #: NULLS NOT DISTINCT

    def sql(self, left: str, right: str) -> str:
        """SQL: do two values meet? Each is a column, a cast or in parentheses. NULL where one is, unless NULLs meet."""
        ours, theirs = _cast(left, self.left), _cast(right, self.right)
        collated = f" COLLATE {qualified(*self.collation)}" if self.collation else ""
        compared = f"{ours}{collated} OPERATOR({quote(self.operator[0])}.{self.operator[1]}) {theirs}"
        return f"coalesce({compared}, {left} IS NULL AND {right} IS NULL)" if self.nulls_meet else compared

    @property
    def schemas(self) -> set[str]:
        """The schemas that must be used to see what it names."""
        return {each[0] for each in (self.operator, self.left, self.right, self.collation) if each}


def comparison_of(found: Mapping[str, Any]) -> Comparison:
    """The answer to `described`."""
    return Comparison(
        nulls_meet=found["nulls_meet"],
        **{name: found[name] and tuple(found[name]) for name in ("operator", "left", "right", "collation")},
    )


def matches(
    compared: Iterable[Comparison],
    left: str,
    left_columns: Sequence[str],
    right: str,
    right_columns: Sequence[str],
) -> str:
    """SQL: two rows meet in all of these columns."""
    columns = zip(compared, left_columns, right_columns, strict=True)
    return " AND ".join(
        each.sql(f"{left}.{quote(ours)}", f"{right}.{quote(theirs)}") for each, ours, theirs in columns
    )


def _other_type(declared: str, actual: str) -> str:
    """No value is cast to a pseudo-type: `anyrange` takes every range."""
    return f"""(SELECT json_build_array(tn.nspname, t.typname) FROM pg_type t
           JOIN pg_namespace tn ON tn.oid = t.typnamespace
          WHERE t.oid = {declared} AND t.typtype <> 'p' AND t.oid <> {actual})"""


def _cast(value: str, kind: Name | None) -> str:
    return f"{value}::{qualified(*kind)}" if kind else value


def described(operator: str, collation: str, left: str, right: str, nulls_meet: str = "false") -> str:
    """SQL: the comparison as JSON. The first arguments are oids: of operator, collation, types of the operands."""
    return f"""
(SELECT json_build_object('operator', json_build_array(n.nspname, o.oprname),
        'nulls_meet', {nulls_meet}, 'left', {_other_type("o.oprleft", left)},
        'right', {_other_type("o.oprright", right)}, 'collation',
        (SELECT json_build_array(cn.nspname, l.collname) FROM pg_collation l
           JOIN pg_namespace cn ON cn.oid = l.collnamespace WHERE l.oid = {collation}))
   FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE o.oid = {operator})"""


def of_index() -> str:
    """SQL: the comparisons by which the index `i` keeps two rows apart, as an array, column by column."""
    equality = """(SELECT m.amopopr FROM pg_opclass y JOIN pg_amop m ON m.amopfamily = y.opcfamily
       AND (m.amoplefttype, m.amoprighttype) = (y.opcintype, y.opcintype) AND m.amopstrategy = 3
     WHERE y.oid = i.indclass[a.attnum - 1])"""
    declared = """(SELECT x.conexclop[a.attnum] FROM pg_constraint x
     WHERE x.conindid = i.indexrelid AND x.conrelid = i.indrelid AND x.conexclop IS NOT NULL)"""
    operator, collation = f"coalesce({declared}, {equality})", "i.indcollation[a.attnum - 1]"
    one = described(operator, collation, "a.atttypid", "a.atttypid", "i.indnullsnotdistinct")
    return f"""array(SELECT {one} FROM pg_attribute a
     WHERE a.attrelid = i.indexrelid AND a.attnum <= i.indnkeyatts ORDER BY a.attnum)"""
