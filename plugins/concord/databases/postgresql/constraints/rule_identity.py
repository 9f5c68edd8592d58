"""A unique rule or foreign key as every site knows it, by canonical names. Sites may call an index as they like,
and a loss that two of them find stands in the ledger once (F26)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from concord.databases.contract.quoting import quote
from concord.databases.postgresql.constraints.unique_rules import UniqueRule
from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.rows.shape import Shape
from concord.tables.manipulation import AnyOperation
from concord.tables.replication_set import TableName


def of_unique(rule: UniqueRule, shape: Shape) -> str:
    """Its columns, in whatever order; and what else tells two rules on the same columns apart."""
    own, others = set(), set()
    names = {spelled: name for name in rule.columns for spelled in (name, quote(name))}
    for part, compared in zip(rule.parts, rule.comparisons, strict=True):
        operator = f"OPERATOR({'.'.join(compared.operator)})" if rule.excludes else "="
        if part in names and operator == "=":
            own.add(names[part])
        else:
            others.add(f"{_renamed(part, shape)} WITH {operator}")
    columns = _canonical(shape.manipulation.operations, own)
    nulls = " NULLS NOT DISTINCT" if rule.nulls_collide else ""
    condition = f" WHERE {_renamed(rule.predicate, shape)}" if rule.predicate else ""
    return f"{', '.join([*sorted(map(quote, columns)), *sorted(others)])}{nulls}{condition}"


def of_foreign_key(key: ForeignKey, shapes: Mapping[TableName, Shape]) -> str:
    """Both tables, and which column refers to which; tables that are not replicated go by their own names."""
    child, parent = shapes.get(key.child), shapes.get(key.parent)
    pairs = sorted(
        f"{quote(_name(ours, child))} TO {quote(_name(theirs, parent))}"
        for ours, theirs in zip(key.columns, key.referenced, strict=True)
    )
    ends = (f"{shape.name if shape else name}" for shape, name in ((child, key.child), (parent, key.parent)))
    return f"{' REFERENCES '.join(ends)}: {', '.join(pairs)}"


def _canonical(operations: Collection[AnyOperation], own: Collection[str]) -> set[str]:
    """The canonical columns that these of the site hold whole; a part of one goes by its own name."""
    whole = [each for each in operations if each.own and set(each.own) <= set(own)]
    made = {name for each in whole for name in each.canonical}
    return set(own).difference(*(each.own for each in whole)) | made


def _name(own: str, shape: Shape | None) -> str:
    """The canonical column that one of the site's is, where it is one whole."""
    names = {} if shape is None else _one_for_one(shape)
    return names.get(own, own)


def _one_for_one(shape: Shape) -> dict[str, str]:
    operations = shape.manipulation.operations
    return {
        each.own[0]: each.canonical[0] for each in operations if len(each.own) == len(each.canonical) == 1
    }


def _renamed(text: str, shape: Shape) -> str:
    """An expression of the catalogue's with canonical names in it; what stands in quotes as a value stays."""
    names = _one_for_one(shape)
    spelled = {each: quote(names.get(name, name)) for name in shape.names for each in (name, quote(name))}
    known = "|".join(map(re.escape, sorted(spelled, key=len, reverse=True)))
    found = re.compile(rf"'(?:[^']|'')*'|(?<![\w\"$])(?:{known})(?![\w\"$(])")
    return found.sub(lambda each: spelled.get(each[0], each[0]), text)
