"""The fate of columns on the way between a site and the canonical form: reversible, or refused (S0-06, S1-34).

A table's rows have one *canonical* form: the columns of the replication set's table entry. A site that keeps
them otherwise declares operations from the canonical columns to its own; the reverse is derived. Each operation
stands alone: no column belongs to two. Values are the database's exact texts, None where NULL.

These functions are the reference. `spark_jobs.steps.manipulate` does the same as columns; tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from concord.values.text_form import TextForm, form_of

Texts = tuple[str | None, ...]


class Operation(BaseModel):
    """One operation: the canonical columns it takes, and the site's own that they become."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    canonical: tuple[str, ...]
    own: tuple[str, ...]

    def to_own(self, values: Texts) -> Texts:
        """From the canonical form; None for each where that cannot be expressed."""
        raise NotImplementedError

    def to_canonical(self, values: Texts) -> Texts:
        """The reverse of `to_own`."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{getattr(self, 'kind', '')} of {', '.join(self.canonical or self.own)}"


class Rename(Operation):
    """Another name; any type."""

    kind: Literal["rename"] = "rename"

    def to_own(self, values: Texts) -> Texts:
        return values

    def to_canonical(self, values: Texts) -> Texts:
        return values


class Cast(Operation):
    """Another type that holds every value of the canonical one."""

    kind: Literal["cast"] = "cast"
    canonical_type: str
    own_type: str

    def to_own(self, values: Texts) -> Texts:
        return _fitting(values, self.own_form)

    def to_canonical(self, values: Texts) -> Texts:
        return _fitting(values, self.canonical_form)

    @property
    def canonical_form(self) -> TextForm:
        return _form(self.canonical_type)

    @property
    def own_form(self) -> TextForm:
        return _form(self.own_type)


def _form(spelled: str) -> TextForm:
    form = form_of(spelled)
    assert form is not None, "the configuration names known types only"
    return form


def _fitting(values: Texts, form: TextForm) -> Texts:
    return tuple(value if value is not None and form.fits(value) else None for value in values)


class Cut(BaseModel):
    """Where one text falls apart into several: after so many characters, or at a separator."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parts: int
    lengths: tuple[int, ...] | None = None
    separator: str | None = None

    def apart(self, text: str | None) -> Texts:
        if text is None:
            return (None,) * self.parts
        if self.lengths is not None:
            starts = self.starts
            return tuple(
                text[start : start + length] for start, length in zip(starts, self.lengths, strict=True)
            )
        assert self.separator is not None, "a cut has lengths or a separator"
        found = tuple(text.split(self.separator))
        return found if len(found) == self.parts else (None,) * self.parts

    def together(self, parts: Texts) -> str | None:
        given = [part for part in parts if part is not None]
        return (self.separator or "").join(given) if len(given) == len(parts) else None

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each part begins, counted from 0."""
        lengths = self.lengths or ()
        return tuple(sum(lengths[:index]) for index in range(len(lengths)))


class Split(Operation):
    """One canonical column in several of the site's."""

    kind: Literal["split"] = "split"
    cut: Cut

    def to_own(self, values: Texts) -> Texts:
        return self.cut.apart(values[0])

    def to_canonical(self, values: Texts) -> Texts:
        return (self.cut.together(values),)


class Combine(Operation):
    """Several canonical columns in one of the site's."""

    kind: Literal["combine"] = "combine"
    cut: Cut

    def to_own(self, values: Texts) -> Texts:
        return (self.cut.together(values),)

    def to_canonical(self, values: Texts) -> Texts:
        return self.cut.apart(values[0])


class Values(Operation):
    """Other words for the same values, one for one."""

    kind: Literal["values"] = "values"
    words: Mapping[str, str]

    def to_own(self, values: Texts) -> Texts:
        return tuple(None if value is None else self.words.get(value) for value in values)

    def to_canonical(self, values: Texts) -> Texts:
        back = {word: value for value, word in self.words.items()}
        return tuple(None if value is None else back.get(value) for value in values)


class Constant(Operation):
    """A column that only this site has, with one value in every row."""

    kind: Literal["constant"] = "constant"
    value: str

    def to_own(self, values: Texts) -> Texts:
        return (self.value,)

    def to_canonical(self, values: Texts) -> Texts:
        return ()


AnyOperation = Annotated[Rename | Cast | Split | Combine | Values | Constant, Field(discriminator="kind")]


class Manipulation(BaseModel):
    """All operations of one table at one site; columns that none names are the same on both sides."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operations: tuple[AnyOperation, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.operations)

    def own_names(self, canonical: Sequence[str]) -> tuple[str, ...]:
        """The site's columns that hold these canonical ones."""
        made = _by_first(self.operations, "canonical")
        taken = {name for operation in self.operations for name in operation.canonical}
        return tuple(
            own
            for name in canonical
            for own in (made[name].own if name in made else () if name in taken else (name,))
        )

    def canonical_names(self, own: Sequence[str]) -> tuple[str, ...]:
        """The canonical columns that these of the site hold; constants hold none."""
        made = _by_first(self.operations, "own")
        taken = {name for operation in self.operations for name in operation.own}
        return tuple(
            canonical
            for name in own
            for canonical in (made[name].canonical if name in made else () if name in taken else (name,))
        )

    @property
    def constants(self) -> tuple[str, ...]:
        """The site's columns that no other has."""
        return tuple(name for each in self.operations if not each.canonical for name in each.own)

    def canonical_row(self, own: Mapping[str, str | None]) -> dict[str, str | None]:
        """The site's row in canonical form."""
        row, taken = dict(own), [(each, each.own, each.canonical) for each in self.operations]
        made = {
            name: value
            for each, names, results in taken
            for name, value in zip(results, each.to_canonical(_popped(row, names)), strict=True)
        }
        return row | made

    def own_row(self, canonical: Mapping[str, str | None]) -> dict[str, str | None]:
        """A canonical row as the site keeps it."""
        row = dict(canonical)
        made = {
            name: value
            for each in self.operations
            for name, value in zip(each.own, each.to_own(_popped(row, each.canonical)), strict=True)
        }
        return row | made

    def unfaithful(self, row: Mapping[str, str | None], *, leaving: bool) -> list[Operation]:
        """The operations that do not give the row back: `leaving` the site, or on the way into it."""
        return [each for each in self.operations if not _comes_back(each, row, leaving=leaving)]


def _comes_back(operation: Operation, row: Mapping[str, str | None], *, leaving: bool) -> bool:
    values = tuple(row[name] for name in (operation.own if leaving else operation.canonical))
    if leaving:
        return operation.to_own(operation.to_canonical(values)) == values
    return operation.to_canonical(operation.to_own(values)) == values


def _popped(row: dict[str, str | None], names: Iterable[str]) -> Texts:
    return tuple(row.pop(name) for name in names)


def _by_first(operations: Sequence[Operation], side: Literal["canonical", "own"]) -> dict[str, Operation]:
    """Each operation under the first column of one side: there its columns of the other side stand."""
    return {getattr(each, side)[0]: each for each in operations if getattr(each, side)}


#: A site that keeps a table as the set's entry says.
NOTHING = Manipulation()
