"""A row that waits at a site, as people meet it, and what a person may decide about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from concord.messages.errors import DecisionRefused
from concord.tables.privacy import PRIVATE

Image = Mapping[str, str | None]

#: `source`, `target`, or the columns of the row that is to stand, as far as they differ from the source's.
Choice = str | Mapping[str, object]

#: The deciding person, in the log: no rule decided.
PERSON = "person"

#: Digits of an id that people type and read.
SHOWN = 12


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """An incoming version that was not written, and what stands in its place now; both in the columns of `site`."""

    site: str
    synchronization: str
    link: str
    table_name: str
    key: Sequence[str]  #: canonical
    kind: str  #: held, or quarantined
    reason: str
    conflict_type: str | None
    since: datetime
    tries: int
    incoming_version: Mapping[str, Any]
    incoming_row: Image | None  #: None: the source deleted it
    present_version: Mapping[str, Any] | None  #: None: nobody has ever changed it here
    present_row: Image | None
    private: Collection[str] = ()  #: columns of `site` that are for its own readers
    key_is_private: bool = False

    @property
    def id(self) -> str:
        """Another one as soon as either row is edited, so that nobody decides about what he has not seen."""
        dots = [_dot(self.incoming_version), _dot(self.present_version)]
        said = json.dumps([self.link, self.table_name, list(self.key), *dots])
        return hashlib.sha256(said.encode()).hexdigest()[:SHOWN]

    @property
    def name(self) -> str:
        """Its key, as everybody may read it."""
        return PRIVATE if self.key_is_private else ", ".join(self.key)

    @property
    def held(self) -> bool:
        return self.kind == "held"

    @property
    def alike(self) -> bool:
        """Both sites have deleted the row, or hold the same one."""
        return self.incoming_row == self.present_row

    def chosen(self, choice: Choice) -> Image | None:
        """The row that a decision means: the source's, the target's, or one that names what differs from them.

        Raises DecisionRefused for a choice that cannot be.
        """
        if choice == "source":
            if not self.held:
                raise DecisionRefused(
                    f"{self.id}: {self.site} refuses the row as it is ({self.reason}); mend what refuses it and the"
                    " next run tries again, or decide target, or give the columns that must differ (--row)"
                )
            return self.incoming_row
        if choice == "target":
            return self.present_row
        assert not isinstance(choice, str), choice
        return self._mended(choice)

    def _mended(self, given: Mapping[str, object]) -> Image:
        whole = self.incoming_row or self.present_row
        if whole is None:
            raise DecisionRefused(f"{self.id}: both sites deleted the row; there is nothing to mend")
        if unknown := sorted(set(given) - set(whole)):
            raise DecisionRefused(
                f"{self.id}: {self.table_name} at {self.site} has no column {', '.join(unknown)};"
                f" it has {', '.join(sorted(whole))}"
            )
        return {**whole, **{name: _text(value) for name, value in given.items()}}


@dataclass(frozen=True, slots=True)
class Unconfigured:
    """A row that waits for a link that has left the configuration."""

    site: str
    link: str
    table_name: str
    key: Sequence[str]
    kind: str
    reason: str
    version: Mapping[str, Any]
    row_image: Image

    @property
    def id(self) -> str:
        said = json.dumps([self.link, self.table_name, list(self.key), *map(str, self.version.values())])
        return hashlib.sha256(said.encode()).hexdigest()[:SHOWN]


def columns_given(text: str) -> Mapping[str, object] | None:
    """The text that a person typed: the columns of a JSON object, decimal numbers digit by digit. None where it is
    none.

    Raises ValueError for what is no JSON.
    """
    given = json.loads(text, parse_float=Decimal)
    return given if isinstance(given, dict) else None


def _text(value: object) -> str | None:
    """A value of JSON as a text that the database reads."""
    if isinstance(value, bool | dict | list):
        return json.dumps(value, ensure_ascii=False, default=float)
    return None if value is None else str(value)


def _dot(version: Mapping[str, Any] | None) -> list[Any] | None:
    return None if version is None else [version.get(part) for part in ("origin", "changed_at", "derived")]
