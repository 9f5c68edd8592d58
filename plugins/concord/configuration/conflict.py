"""Settings about conflicts: a chain of resolvers, and others for some types of conflict (S4-047)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from concord.configuration.field import Settings, did_you_mean
from concord.rules.kinds import KINDS, LAST, columns_of, named
from concord.rules.merging import ADDS_UP, COMMON, Custom
from concord.rules.policy import ENDS, Policy
from concord.values.identifier import parse_identifier
from concord.versions.conflict import ConflictType

#: Of code that is installed beside Concord: the configuration never holds any.
_ENTRY_POINT = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"
_OPTIONS = (ADDS_UP, COMMON)


def is_entry_point(text: str) -> bool:
    """Is it written as `package.module:function`?"""
    return re.fullmatch(_ENTRY_POINT, text) is not None


def _resolver(text: str) -> str:
    """`maximum("Price")` as `maximum(Price)`: the column as the catalogue spells it. Raises ValueError."""
    name, column = named(text)
    if name not in KINDS or ("(" in text and not text.endswith(")")):
        raise ValueError(f"unknown resolver; {did_you_mean(name, KINDS)}")
    if KINDS[name].takes_function:
        function, *options = (each.strip() for each in column.split(","))
        if len(options) > len({*options} & {*_OPTIONS}):
            known = " and ".join(_OPTIONS)
            raise ValueError(f"knows only {known} after the function; write {name}({function}, {ADDS_UP})")
        if not is_entry_point(function):
            raise ValueError(f"names no function; write {name}(package.module:function)")
        return Custom(function, ADDS_UP in options, COMMON in options).name
    if not KINDS[name].takes_column:
        if "(" in text:
            raise ValueError(f"takes no column; write {name}")
        return name
    if not column:
        raise ValueError(f"names no column; write {name}(column)")
    columns = [
        parse_identifier(each) for each in (columns_of(column) if KINDS[name].takes_more else [column])
    ]
    if len(set(columns)) < len(columns):
        raise ValueError("names one column twice; keep the first")
    return f"{name}({', '.join(columns)})"


def _chain(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("names one thing twice; keep the first")
    if last := next((name for name in names[:-1] if name in ENDS), None):
        raise ValueError(f"nothing after {last} is ever asked; put it last")
    kinds = [named(name)[0] for name in names]
    if "custom" in kinds and sum(KINDS[kind].merges for kind in kinds) > 1:
        raise ValueError("beside custom nothing else can merge; let the function return the whole new row")
    return names


def _pattern() -> str:
    columns = [name for name, kind in KINDS.items() if kind.takes_column]
    functions = "|".join(name for name, kind in KINDS.items() if kind.takes_function)
    plain = [name for name in KINDS if name not in columns and name != functions]
    function = rf"({functions})\([^,()]+(, *({'|'.join(_OPTIONS)})){{0,2}}\)"
    return rf"^({'|'.join(plain)}|({'|'.join(columns)})\(.+\)|{function})$"


ResolverName = Annotated[
    str, AfterValidator(_resolver), WithJsonSchema({"type": "string", "pattern": _pattern()})
]
Resolvers = Annotated[tuple[ResolverName, ...], Field(min_length=1), AfterValidator(_chain)]


class ConflictSettings(Settings):
    """How a conflict is decided. `latest_timestamp` decides whatever a chain leaves undecided."""

    resolvers: Resolvers = Field(
        default=(LAST,), description="Asked in order until one decides, for every type that has no own chain."
    )
    insert_insert: Resolvers | None = Field(
        default=None, description="Both sites inserted one key. Default: resolvers."
    )
    update_update: Resolvers | None = Field(
        default=None, description="Both sites changed one row. Default: resolvers."
    )
    update_delete: Resolvers | None = Field(
        default=None, description="One site changed a row, the other deleted it. Default: resolvers."
    )
    delete_update: Resolvers | None = Field(
        default=None, description="The same as update_delete, seen from the other link."
    )

    @model_validator(mode="after")
    def _alike_from_both_links(self) -> ConflictSettings:
        if self.delete_update and self.update_delete and self.delete_update != self.update_delete:
            raise ValueError(
                "update_delete and delete_update differ, but are one conflict, seen from either link;"
                " write one of the two"
            )
        return self

    @classmethod
    def short(cls, resolvers: tuple[str, ...]) -> ConflictSettings:
        """The long form of `resolvers` alone; they have been read already, and must not be read twice."""
        return cls.model_construct(resolvers=resolvers)

    def policy(self, places: Mapping[str, int]) -> Policy:
        """`places`: which sites are nearer to the source of the synchronizations, the greater the nearer."""
        chains = {
            ConflictType.INSERT_INSERT: self.insert_insert,
            ConflictType.UPDATE_UPDATE: self.update_update,
            ConflictType.UPDATE_DELETE: self.update_delete or self.delete_update,
        }
        by_type = {kind: chain for kind, chain in chains.items() if chain}
        named_here = {named(each)[0] for chain in (self.resolvers, *by_type.values()) for each in chain}
        asked = any(KINDS[name].by_source for name in named_here)
        return Policy(resolvers=self.resolvers, by_type=by_type, places=places if asked else {})


def only_one(resolvers: object, conflict: object) -> None:
    """Raises ValueError where both are written."""
    if resolvers is not None and conflict is not None:
        raise ValueError("resolvers and conflict say the same thing; move the chain to conflict.resolvers")
