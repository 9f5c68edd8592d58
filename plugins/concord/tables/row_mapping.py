"""The way of one table's rows from one site's columns to another's, and the proof that each would come back (S0-06).

These functions are the reference, for few rows. `spark_jobs.steps.mapped_texts` does the same for many; tests hold the
two equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from concord.tables.manipulation import Manipulation, Operation, Rename, Texts
from concord.values.text_form import TextForm

Direction = Literal["canonical", "own"]


class Columns:
    """One table's columns at one site, as exact texts travel."""

    def __init__(
        self,
        site: str,
        names: Sequence[str],
        manipulation: Manipulation,
        forms: Mapping[str, TextForm | None],
        key: Collection[str],
        private: Collection[str] = (),
    ) -> None:
        """`forms` says how each reads as text; None where texts of its type cannot be judged."""
        self.site, self.names, self.manipulation = site, tuple(names), manipulation
        self.text_forms = tuple(forms[name] for name in names)
        self.key_names = tuple(name for name in names if name in key)
        self.key_is_private = not set(private).isdisjoint(key)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Their names on the way."""
        return tuple(f"c{place}" for place, _ in enumerate(self.names))

    @property
    def spark_types(self) -> tuple[str, ...]:
        return ("string",) * len(self.names)

    @property
    def key_aliases(self) -> tuple[str, ...]:
        return tuple(
            alias for alias, name in zip(self.aliases, self.names, strict=True) if name in self.key_names
        )


@dataclass(frozen=True, slots=True)
class Mapped:
    """A row in the target's columns; `refused` says which operation it does not fit, and which row it is."""

    row: Texts
    refused: str | None = None


#: Rows of one table, mapped in their order.
Mapper = Callable[["RowMapping", Sequence[Texts]], Sequence[Mapped]]


@dataclass(frozen=True)
class RowMapping:
    """From the columns of one site to those of another."""

    source: Columns
    target: Columns

    @cached_property
    def changed(self) -> frozenset[str]:
        """The target's columns whose values an operation at either end makes."""
        return changed_names(self.source.manipulation, self.target.manipulation)

    @cached_property
    def origins(self) -> tuple[frozenset[int], ...]:
        """For each of the target's columns: the places of the source's columns that it is made of."""
        places = {name: frozenset([place]) for place, name in enumerate(self.source.names)}
        canonical = _passed(places, self.source.manipulation.operations, "own", "canonical")
        made = _passed(canonical, self.target.manipulation.operations, "canonical", "own")
        return tuple(made[name] for name in self.target.names)

    @cached_property
    def taken(self) -> frozenset[int]:
        """The places of the source's columns that the changed ones are made of."""
        made = zip(self.target.names, self.origins, strict=True)
        return frozenset[int]().union(*(of for name, of in made if name in self.changed))

    def mapped(self, row: Texts) -> Mapped:
        """One row. Nothing of a value is lost on the way: a row that would not come back the same is refused."""
        here, there = self.source.manipulation, self.target.manipulation
        own = dict(zip(self.source.names, row, strict=True))
        canonical = here.canonical_row(own)
        arriving = there.own_row(canonical)
        wrong = [
            *(f"{each} at {self.source.site}" for each in here.unfaithful(own, leaving=True)),
            *(f"{each} at {self.target.site}" for each in there.unfaithful(canonical, leaving=False)),
            *self._misfits(arriving),
        ]
        made = tuple(arriving[name] for name in self.target.names)
        return Mapped(made, f"{wrong[0]}{self._row(own)}") if wrong else Mapped(made)

    def _misfits(self, arriving: Mapping[str, str | None]) -> list[str]:
        return [
            f"column {name} of type {form.type} at {self.target.site}"
            for name, form in zip(self.target.names, self.target.text_forms, strict=True)
            if name in self.changed and form is not None
            for value in [arriving[name]]
            if value is not None and not form.fits(value)
        ]

    def _row(self, own: Mapping[str, str | None]) -> str:
        """Which row it is; nothing where that is private."""
        if self.source.key_is_private:
            return ""
        return f", key {', '.join(text for name in self.source.key_names if (text := own[name]) is not None)}"


def in_the_driver(mapping: RowMapping, rows: Sequence[Texts]) -> list[Mapped]:
    """One after the other, in this process."""
    return [mapping.mapped(row) for row in rows]


def changed_names(source: Manipulation, target: Manipulation) -> frozenset[str]:
    """The target's columns that an operation at either end changes in more than name."""
    changed = {
        name
        for operation in source.operations
        if not isinstance(operation, Rename)
        for name in operation.canonical
    }
    beyond = {
        name
        for operation in target.operations
        if not isinstance(operation, Rename) or set(operation.canonical) & changed
        for name in operation.own
    }
    taken = {name for operation in target.operations for name in operation.canonical}
    return frozenset(beyond | (changed - taken))


def _passed(
    places: Mapping[str, frozenset[int]],
    operations: Sequence[Operation],
    taken: Direction,
    made: Direction,
) -> dict[str, frozenset[int]]:
    """The places that each column is made of, after one site's operations."""
    left = dict(places)
    results: dict[str, frozenset[int]] = {}
    for operation in operations:
        of = frozenset[int]().union(*(left.pop(name) for name in getattr(operation, taken)))
        results |= dict.fromkeys(getattr(operation, made), of)
    return left | results
