"""Settings of hooks: functions that see every row before a site writes it (S3-13)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer

from concord.configuration.conflict import is_entry_point
from concord.configuration.field import ByName, Key, Settings, Table
from concord.rules.hook import Added, Hook


def _entry_point(text: str) -> str:
    if not is_entry_point(text):
        raise ValueError("names no function; write package.module:function")
    return text


class HookSettings(Settings):
    """A function of yours that sees every row of a table before a link or a replication writes it at one site."""

    call: Annotated[str, AfterValidator(_entry_point)] = Field(
        description="The function, as package.module:function: code that is installed beside Concord."
    )
    adds: Annotated[
        Mapping[Table, Key],
        AfterValidator(MappingProxyType),
        PlainSerializer(lambda adds: {str(table): columns for table, columns in adds.items()}),
    ] = Field(
        default_factory=lambda: MappingProxyType({}),
        description="Tables of the site in which it may add rows, and the columns that it gives. Default: none.",
    )

    @property
    def hook(self) -> Hook:
        """The hook as a run asks it."""
        adds = (Added(table=table, columns=columns) for table, columns in self.adds.items())
        return Hook(call=self.call, adds=tuple(adds))


Hooks = Annotated[
    ByName[HookSettings],
    Field(
        default_factory=lambda: MappingProxyType({}),
        description="For a site, a function of yours that sees every row before it is written there.",
    ),
]
