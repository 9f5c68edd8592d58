"""`provision --skip-refused`: the refused tables and snapshots are left out, and the others are provisioned.

A table that is refused at one site is left out at every site. Its children are then refused as well, so the sites are
looked at again until nothing is refused. A reason that concerns a site as a whole stops everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concord.databases.contract.refusal import Refusal
from concord.databases.contract.surveyed_site import Installation
from concord.databases.refusals import refusals, refuse
from concord.databases.survey import Survey, surveyed


@dataclass(frozen=True, slots=True)
class Accepted:
    """The part of the installations that `provision` takes, and why it is not all."""

    installations: list[Installation]
    refusals: list[Refusal]  #: each once, in the order found
    tables: list[str]  #: that are left out, as the replication sets call them
    snapshots: list[str]  #: that are left out


def accepted(installations: Sequence[Installation]) -> Accepted:
    """Leave out what is refused. Writes nothing.

    Raises ProvisioningRefused where a site is refused as a whole, where leaving a table out would end its capture, and
    where nothing is left.
    """
    wanted, found, first = list(installations), dict[str, Refusal](), list[Refusal]()
    while True:
        with surveyed(wanted) as survey:
            every = refusals(survey)
            if not every:
                break
            found |= {each.text: each for each in every}
            first = first or every
            # Until only reasons of sites are left: a right, for example, may be lacking for a refused table alone.
            tables = {name for each in every for name in each.tables}
            snapshots = {name for each in every for name in each.snapshots}
            fewer, lost = [each.without(tables, snapshots) for each in wanted], _captured(survey, tables)
            if lost or fewer == wanted or not _carries_something(fewer):
                refuse(survey, [*first, *(each for each in every if each.of_site)], *lost)
            wanted = fewer
    left_out = (_names(installations) - _names(wanted), _snapshots(installations) - _snapshots(wanted))
    reasons = [each for each in found.values() if not each.of_site]
    return Accepted(wanted, reasons, *map(sorted, left_out))


def _captured(survey: Survey, tables: set[str]) -> list[str]:
    return [
        f"{each.installation.site}: {name} is provisioned, and leaving it out would end the capture of its changes;"
        " make it fit again, or take it out of the configuration"
        for each in survey.reached
        for name in sorted(each.captured(tables))
    ]


def _carries_something(installations: Sequence[Installation]) -> bool:
    return any(each.carried or each.snapshots or each.replications for each in installations)


def _names(installations: Sequence[Installation]) -> set[str]:
    """A source that is captured for snapshots alone is named by these."""
    return {table.name for each in installations for table in each.carried if not table.captured_only}


def _snapshots(installations: Sequence[Installation]) -> set[str]:
    return {snapshot.name for each in installations for snapshot in each.snapshots}
