"""Manipulate: source shape → canonical → target shape, and the proof that every row would come back (S1-34).

A second form of `tables.manipulation`, as columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from concord.databases.contract.rows import VERSION_TYPES, MappedShape
from concord.tables.manipulation import Cast, Combine, Constant, Cut, Operation, Rename, Split, Values
from concord.tables.row_mapping import changed_names
from concord.transmission.verdicts import UNFAITHFUL
from concord.values.text_form import TextForm

Cells = dict[str, Column]


def manipulate(
    changes: DataFrame, source: MappedShape, target: MappedShape, carried: Sequence[str] = ()
) -> DataFrame:
    """The target's columns and the version, in the target's order; for mapped tables also `unfaithful`.
    The columns `carried` pass as they are.

    Nothing is computed for a table that neither site maps.
    """
    if not (source.manipulation or target.manipulation):
        return changes.select(*target.aliases, *VERSION_TYPES, *carried)
    own = {name: F.col(alias) for name, alias in zip(source.names, source.aliases, strict=True)}
    canonical, leaving = _through(own, source, out=True)
    arriving, entering = _through(canonical, target, out=False)
    mapped = changed_names(source.manipulation, target.manipulation)
    typed, misfits = _typed(arriving, target, mapped)
    row = _row(source)
    found = leaving + entering + misfits
    wrong = F.coalesce(
        *(F.when(bad, F.concat(F.lit(what), row)) for what, bad in found), F.lit(None).cast("string")
    )
    return changes.select(
        *(typed[name].alias(alias) for name, alias in zip(target.names, target.aliases, strict=True)),
        *VERSION_TYPES,
        *carried,
        wrong.alias(UNFAITHFUL),
    )


def _row(source: MappedShape) -> Column:
    """Which row it is, in a message; nothing where that is private."""
    if source.key_is_private:
        return F.lit("")
    key = F.concat_ws(", ", *(F.col(alias).cast("string") for alias in source.key_aliases))
    return F.concat(F.lit(", key "), key)


def _through(cells: Cells, shape: MappedShape, *, out: bool) -> tuple[Cells, list[tuple[str, Column]]]:
    """Cells taken through one site's operations, and for each whether a row fails to come back."""
    left, made = dict(cells), Cells()
    wrong: list[tuple[str, Column]] = []
    for operation in shape.manipulation.operations:
        taken, results = (operation.own, operation.canonical) if out else (operation.canonical, operation.own)
        values = [left.pop(name) for name in taken]
        if not isinstance(operation, Rename):
            values = [value.cast("string") for value in values]
        there = _apply(operation, values, out=out)
        made |= dict(zip(results, there, strict=True))
        back = _apply(operation, there, out=not out)
        same = [_same(value, again) for value, again in zip(values, back, strict=True)]
        if same and not isinstance(operation, Rename):
            is_key = set(operation.own) & set(shape.key_names)
            bad = ~_all(same) if is_key else ~_all(same) & ~_gone()
            wrong.append((f"{operation} at {shape.site}", bad))
    return left | made, wrong


def _gone() -> Column:
    """The target will not hold the row: what of it does not fit is no harm."""
    return F.col("deleted") | F.col("out_of_scope")


def _same(one: Column, other: Column) -> Column:
    return one.eqNullSafe(other)


def _all(conditions: Iterable[Column]) -> Column:
    every = F.lit(True)
    for condition in conditions:
        every = every & condition
    return every


def _apply(operation: Operation, values: Sequence[Column], *, out: bool) -> list[Column]:
    """`to_canonical` (out) or `to_own` of one operation."""
    match operation:
        case Cast():
            form = operation.canonical_form if out else operation.own_form
            return [F.when(fits(form, value), value) for value in values]
        case Split():
            return [together(operation.cut, values)] if out else apart(operation.cut, values[0])
        case Combine():
            return apart(operation.cut, values[0]) if out else [together(operation.cut, values)]
        case Values():
            return [_words(operation, value, out=out) for value in values]
        case Constant():
            return [] if out else [F.lit(operation.value)]
        case _:
            return list(values)


def fits(form: TextForm, value: Column) -> Column:
    """A second form of `TextForm.fits`, as a column."""
    conditions = [value.isNotNull()]
    if form.pattern is not None:
        conditions.append(value.rlike(rf"\A(?:{form.pattern})\z"))
    if form.longest is not None:
        conditions.append(F.length(value) <= form.longest)
    if form.limit is not None:
        number = value.try_cast("decimal(38,0)")
        conditions.append(
            (number >= F.lit(-form.limit)) & (number < F.lit(str(form.limit)).cast("decimal(38,0)"))
        )
    if form.calendar:
        conditions.append(value.try_cast("date").isNotNull())
    return F.coalesce(_all(conditions), F.lit(False))


def apart(cut: Cut, value: Column) -> list[Column]:
    """`Cut.apart` as columns."""
    if cut.lengths is not None:
        pairs = zip(cut.starts, cut.lengths, strict=True)
        return [F.substring(value, start + 1, length) for start, length in pairs]
    parts = F.split(value, re.escape(cut.separator or ""), -1)
    return [F.when(F.size(parts) == cut.parts, parts[place]) for place in range(cut.parts)]


def together(cut: Cut, values: Sequence[Column]) -> Column:
    """`Cut.together` as a column: NULL where a part is."""
    given = [values[0]]
    for value in values[1:]:
        given += [F.lit(cut.separator), value] if cut.separator else [value]
    return F.concat(*given)


def _words(operation: Values, value: Column, *, out: bool) -> Column:
    found = F.lit(None).cast("string")
    for canonical, own in operation.words.items():
        here, there = (own, canonical) if out else (canonical, own)
        found = F.when(value == F.lit(here), F.lit(there)).otherwise(found)
    return found


def _typed(
    cells: Cells, target: MappedShape, mapped: Collection[str]
) -> tuple[Cells, list[tuple[str, Column]]]:
    """Mapped texts in the target's types; what a type would change or refuse is named."""
    typed, wrong = dict(cells), []
    for name, spark, form in zip(target.names, target.spark_types, target.text_forms, strict=True):
        if name not in mapped:
            continue
        if form is not None:
            bad = cells[name].isNotNull() & ~fits(form, cells[name]) & ~F.col("out_of_scope")
            wrong.append((f"column {name} of type {form.type} at {target.site}", bad))
        typed[name] = cells[name].try_cast(spark)
    return typed, wrong
