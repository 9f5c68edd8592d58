"""Which columns the conflict ledger may show: as they are, as a keyed hash, or not at all; messages show none of
these.

The ledger outlives the row, travels to the repository and is read by more people than the table. A value that must
not stand there is taken out where the entry is written, inside of the site's own transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from concord.tables.manipulation import Manipulation

#: The text that people read in the place of a value.
PRIVATE = "(private)"


class Treatment(StrEnum):
    """The fate of a column's value in the ledger."""

    STORED = "stored"
    HASHED = "hashed"  #: equal values can be told, at one site, and nothing else
    DROPPED = "dropped"


_STRICTNESS = tuple(Treatment)

#: Canonical column → treatment; columns that are not named are stored.
Treatments = Mapping[str, Treatment]


def strictest(treatments: Iterable[Treatment]) -> Treatment:
    """Of what goes into one value."""
    return max(treatments, key=_STRICTNESS.index, default=Treatment.STORED)


def at_site(treatments: Treatments, manipulation: Manipulation) -> dict[str, Treatment]:
    """The same for a site's own columns, those that are stored left out.

    A private column that is split into several columns is private in each. A column that holds one private column
    among others is private.
    """
    own: dict[str, Treatment] = dict(treatments)
    for operation in manipulation.operations:
        given = [own.pop(name) for name in operation.canonical if name in own]
        if given:
            own |= dict.fromkeys(operation.own, strictest(given))
    return {name: treatment for name, treatment in own.items() if treatment is not Treatment.STORED}
