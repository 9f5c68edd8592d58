"""Overturns that a person asks for, done or refused."""

from typing import Any

import pytest

from concord.databases.postgresql.upkeep import overturning
from concord.jobs.ledger import Entry, Overturn
from concord.jobs.link import Direction
from concord.messages.errors import OverturnRefused
from tests.given.two_sites import Pair


def overturn(sites: Pair, entry: Entry, *, although_changed: bool = False, **job: object) -> Overturn:
    direction = Direction(entry.link.rpartition("/")[2])
    return overturning.overturn(
        sites.job(direction, **job), entry, "a person", although_changed=although_changed
    )


def refused(sites: Pair, entry: Entry, **asked: Any) -> str:
    """Why an overturn is refused; nothing is written by it, at either site."""
    before = [site.writes() for site in sites.sites]
    with pytest.raises(OverturnRefused) as refusal:
        overturn(sites, entry, **asked)
    assert [site.writes() for site in sites.sites] == before
    assert "\n" not in refusal.value.message
    return refusal.value.message
