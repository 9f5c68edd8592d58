"""Cleanups of everything that is old enough, at any number of sites, stopped where a test says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from concord.databases.postgresql.upkeep import agreement, cleanup
from concord.jobs.upkeep import CarryingSite, SiteCleanup
from tests.given.many_sites import Network
from tests.given.site import Site

#: So many rows that Spark is never asked for.
BY_THE_DRIVER = 10**9


def forget(sites: Sequence[CarryingSite], *, age_us: int = 0, dry_run: bool = False) -> list[SiteCleanup]:
    """Versions of living rows go at this age, and tombstones at any."""
    now = time.time_ns() // 1000
    return list(cleanup.clean(sites, dry_run=dry_run, now_us=now, min_age_us=0, living_age_us=age_us).tables)


def versions(site: Site, table: str = "public.book") -> list[tuple[int, bool]]:
    """Keys that the site remembers a version of, and whether it is agreed to forget it."""
    return site.rows(f'SELECT id, agreed FROM concord."{table}" ORDER BY id')


def remembered(network: Network, table: str = "public.book") -> dict[str, list[tuple[int, bool]]]:
    return {site.name: versions(site, table) for site in network.sites}


def linked(network: Network) -> None:
    """Every link, and again each whose source has got something since, until nothing is carried."""
    due = dict.fromkeys(network.topology.links)
    for _ in range(2 * network.topology.diameter + 1):
        for link in list(due):
            del due[link]
            _, target = link
            if network.run(*link, spark_from=BY_THE_DRIVER).total("acquired"):
                due |= dict.fromkeys(each for each in network.topology.links if each[0] == target)
        if not due:
            return
    raise AssertionError("the sites never come to rest")


class Stopped(BaseException):
    """The cleanup is killed here."""


def stepwise(monkeypatch: pytest.MonkeyPatch, between: Callable[[str, str], None]) -> None:
    """Before each site marks or deletes, `between` is called with the step and the site's name; it may raise."""

    def told(step: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def acting(holder: Any, *about: Any) -> Any:
            between(step, holder.site)
            return act(holder, *about)

        return acting

    monkeypatch.setattr(agreement, "_publish", told("publish", agreement._publish))
    monkeypatch.setattr(cleanup, "delete", told("forget", cleanup.delete))


def agree_at_london_alone(pair: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sites hold the versions of three items, one deleted. London has agreed to forget them, and Cape Town not."""
    pair["london"].run("INSERT INTO item VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    linked(pair)
    pair["london"].run("DELETE FROM item WHERE id = 3")
    linked(pair)
    forget_until(pair, "publish", "capetown", monkeypatch)


def forget_until(network: Network, step: str, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleanup of everything, killed when it comes to that step of the site."""

    def die(*now: str) -> None:
        if now == (step, site):
            raise Stopped

    with monkeypatch.context() as patched:
        stepwise(patched, die)
        with pytest.raises(Stopped):
            forget(network.carrying())
