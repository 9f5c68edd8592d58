"""How a site keeps the columns of a table otherwise: what can be set, each value by itself (S0-06, S1-34)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    StrictInt,
    WithJsonSchema,
    model_validator,
)

from concord.configuration.field import Settings, did_you_mean
from concord.tables.manipulation import (
    AnyOperation,
    Cast,
    Combine,
    Constant,
    Cut,
    Manipulation,
    Rename,
    Split,
    Values,
)
from concord.values.identifier import parse_identifier
from concord.values.text_form import KNOWN_TYPES, TextForm, form_of, holds

T = TypeVar("T")


def _type(text: str) -> str:
    form = form_of(text)
    if form is None:
        raise ValueError(f"not a type that can be cast exactly; {did_you_mean(text, KNOWN_TYPES)}")
    return form.type


def _text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a NUL character, which no database column holds; leave it out")
    return value


def _one_to_one(words: Mapping[str, str]) -> Mapping[str, str]:
    seen: dict[str, str] = {}
    for value, word in words.items():
        if word in seen:
            raise ValueError(
                f"not one to one: '{seen[word]}' and '{value}' both become '{word}', and nobody could tell them"
                " apart on the way back; give each its own word"
            )
        seen[word] = value
    return MappingProxyType(dict(words))


Column = Annotated[str, AfterValidator(parse_identifier)]
TypeName = Annotated[str, AfterValidator(_type), WithJsonSchema({"type": "string", "examples": ["integer"]})]
_SCALAR = WithJsonSchema({"type": ["string", "integer", "boolean"]})
Word = Annotated[str, BeforeValidator(_text), _SCALAR]
Words = Annotated[
    Mapping[Annotated[str, BeforeValidator(_text)], Word],
    Field(min_length=1),
    AfterValidator(_one_to_one),
    PlainSerializer(dict),
]
Length = Annotated[StrictInt, Field(ge=1)]
#: At least one column; nobody can change the mapping after parsing.
ByColumn = Annotated[
    Mapping[Column, T], Field(min_length=1), AfterValidator(MappingProxyType), PlainSerializer(dict)
]


class CastSettings(Settings):
    """Another type, which must hold every value of the canonical one."""

    canonical: TypeName = Field(description="The type in the set's own form, as most sites have it.")
    here: TypeName = Field(description="The type at this site.")
    into: Column | None = Field(default=None, description="The column's name here. Default: the same.")

    @model_validator(mode="after")
    def _holds(self) -> Self:
        wide, narrow = _known(self.here), _known(self.canonical)
        if wide == narrow:
            raise ValueError(f"casts {wide.type} to itself; leave it out, or use rename for another name")
        if not holds(wide, narrow):
            raise ValueError(
                f"{wide.type} does not hold every value of {narrow.type}: some would be lost;"
                " choose a type that holds them all"
            )
        return self


def _known(spelled: str) -> TextForm:
    form = form_of(spelled)
    assert form is not None, "validated before"
    return form


class CutSettings(Settings):
    """Where one text falls apart."""

    lengths: tuple[Length, ...] | None = Field(default=None, description="Characters of each part.")
    separator: str | None = Field(default=None, description="The text between the parts.")

    def cut(self, parts: int) -> Cut:
        """The cut into so many parts."""
        return Cut(parts=parts, lengths=self.lengths, separator=self.separator)


def _check_cut(settings: CutSettings, parts: int) -> None:
    if (settings.lengths is None) == (settings.separator is None):
        raise ValueError("cannot be reversed: give either lengths or separator, to tell the parts apart")
    if settings.separator == "":
        raise ValueError(
            "cannot be reversed: the separator is empty; write the text that stands between the parts"
        )
    if settings.lengths is not None and len(settings.lengths) != parts:
        raise ValueError(f"{parts} parts but {len(settings.lengths)} lengths; give each part its length")


class SplitSettings(CutSettings):
    """One canonical column in several here."""

    into: tuple[Column, ...] = Field(
        min_length=1, description="The columns here, in the order of their parts."
    )

    @model_validator(mode="after")
    def _reversible(self) -> Self:
        if len(self.into) < 2:
            raise ValueError("one part is no split; name two columns or more, or use rename")
        _check_cut(self, len(self.into))
        return self


class CombineSettings(CutSettings):
    """Several canonical columns in one here."""

    columns: tuple[Column, ...] = Field(
        min_length=1, description="The canonical columns, in the order of their parts."
    )

    @model_validator(mode="after")
    def _reversible(self) -> Self:
        if len(self.columns) < 2:
            raise ValueError("one part is nothing to combine; name two columns or more, or use rename")
        _check_cut(self, len(self.columns))
        return self


class ValuesSettings(Settings):
    """Other words for the same values."""

    map: Words = Field(description="canonical value: value here; one to one, and complete.")
    into: Column | None = Field(default=None, description="The column's name here. Default: the same.")


class MappingSettings(Settings):
    """How one site keeps a table's columns otherwise; declared once, the reverse is derived."""

    rename: ByColumn[Column] | None = Field(default=None, description="canonical name: name here.")
    cast: ByColumn[CastSettings] | None = Field(default=None, description="By canonical column.")
    split: ByColumn[SplitSettings] | None = Field(default=None, description="By canonical column.")
    combine: ByColumn[CombineSettings] | None = Field(
        default=None, description="By the column here that the canonical ones become."
    )
    values: ByColumn[ValuesSettings] | None = Field(default=None, description="By canonical column.")
    constant: ByColumn[Word] | None = Field(
        default=None, description="column that only this site has: its value in every row."
    )

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not self.operations():
            raise ValueError("empty; name an operation, such as rename, or leave the site out")
        return self

    def operations(self) -> list[tuple[tuple[str, str], AnyOperation]]:
        """Each operation, with the keys under which it stands."""
        return [
            *((("rename", name), Rename(canonical=(name,), own=(own,))) for name, own in _items(self.rename)),
            *((("cast", name), _cast(name, cast)) for name, cast in _items(self.cast)),
            *((("split", name), _split(name, split)) for name, split in _items(self.split)),
            *((("combine", name), _combine(name, combine)) for name, combine in _items(self.combine)),
            *((("values", name), _values(name, values)) for name, values in _items(self.values)),
            *((("constant", name), _constant(name, value)) for name, value in _items(self.constant)),
        ]

    def manipulation(self) -> Manipulation:
        """As a link carries it."""
        return Manipulation(operations=tuple(operation for _, operation in self.operations()))


def _items(settings: Mapping[str, T] | None) -> list[tuple[str, T]]:
    return list((settings or {}).items())


def _cast(name: str, settings: CastSettings) -> Cast:
    own = settings.into or name
    return Cast(canonical=(name,), own=(own,), canonical_type=settings.canonical, own_type=settings.here)


def _split(name: str, settings: SplitSettings) -> Split:
    return Split(canonical=(name,), own=settings.into, cut=settings.cut(len(settings.into)))


def _combine(name: str, settings: CombineSettings) -> Combine:
    return Combine(canonical=settings.columns, own=(name,), cut=settings.cut(len(settings.columns)))


def _values(name: str, settings: ValuesSettings) -> Values:
    return Values(canonical=(name,), own=(settings.into or name,), words=dict(settings.map))


def _constant(name: str, value: str) -> Constant:
    return Constant(canonical=(), own=(name,), value=value)
