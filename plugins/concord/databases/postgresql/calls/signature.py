"""A procedure as a site has it, and the statement that calls it: the same SQL at the publisher and the subscriber."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, one
from concord.tables.replication_set import TableName


def question(schema: str, name: str) -> str:
    """A query for `problem`, which forbids its calls to travel, and `types`, a JSON array of the parameters' types.

    `schema` and `name` are SQL. A call has a way in alone (S4-132), and one routine of that name to lead to.
    """
    return f"""
SELECT CASE WHEN count(*) = 0 THEN 'does not exist; create it, or correct its name'
            WHEN count(*) > 1 THEN 'is one of several routines of that name; name it otherwise'
            WHEN bool_or(p.prokind <> 'p') THEN 'is no procedure, and only those have calls that travel'
            WHEN bool_or(p.proargmodes IS NOT NULL)
            THEN 'has other parameters than IN, and a call brings nothing back'
            WHEN bool_or(EXISTS (SELECT FROM unnest(p.proargtypes) a (type) JOIN pg_type t ON t.oid = a.type
                                  WHERE t.typtype = 'p'))
            THEN 'has a parameter that takes any type; name one'
       END AS problem,
       jsonb_agg((SELECT coalesce(jsonb_agg(format('%I.%I', s.nspname, t.typname) ORDER BY a.place), '[]')
                    FROM unnest(p.proargtypes) WITH ORDINALITY a (type, place)
                    JOIN pg_type t ON t.oid = a.type JOIN pg_namespace s ON s.oid = t.typnamespace)) -> 0 AS types
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname = {schema} AND p.proname = {name}"""


def given(types: str, arguments: str, each: str) -> str:
    """SQL: the arguments, as `each` writes one value of one type (`a.value`, `t.value`), in their order.

    A constant is read by its type's own function, and not by a cast that somebody has made.
    """
    return (
        f"(SELECT coalesce(string_agg({each}, ', ' ORDER BY t.place), '')"
        f" FROM jsonb_array_elements_text({types}) WITH ORDINALITY t (value, place)"
        f" JOIN jsonb_array_elements_text({arguments}) WITH ORDINALITY a (value, place) ON a.place = t.place)"
    )


def statement(schema: str, name: str, types: str, arguments: str) -> str:
    """SQL: the text of the call."""
    listed = given(types, arguments, "format('%L::%s', a.value, t.value)")
    return f"format('CALL %I.%I(%s)', {schema}, {name}, {listed})"


def problems(connection: Connection, procedures: Iterable[TableName]) -> Iterator[str]:
    """Why calls of these cannot travel, each one line."""
    for each in procedures:
        asked = question(literal(each.schema_name), literal(each.name))
        (problem, _) = one(connection, asked)
        if problem is not None:
            yield f"the procedure {each} {problem}"
