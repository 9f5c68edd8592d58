"""How links stand to their objectives, for people: `python -m concord status`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pendulum
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases.contract.status import Pending
from concord.jobs.link import Direction, link_name
from concord.jobs.replication import configured_name, of_replication
from concord.orchestration.tasks import lag
from concord.orchestration.tasks.replication_standing import Standing
from concord.repository import objectives
from concord.rules.objective import Aim, Measured, Objective, seconds_until
from concord.terminal.shown import Ago, Columns, problem, show

_COLUMNS = Columns(
    (
        "link",
        "lag",
        "lag_now",
        "lag_wanted",
        "rows_per_second",
        "rows_per_second_wanted",
        "missed",
        "missed_since",
    ),
    headings={
        "lag": "lag, s",
        "lag_now": "now, s",
        "lag_wanted": "wanted, s",
        "rows_per_second": "rows/s",
        "rows_per_second_wanted": "wanted, rows/s",
    },
    prose=("missed",),
)


@dataclass(frozen=True)
class _Stands:
    """One link: what its runs measured last, and its lag until now."""

    link: str  #: as people call it
    wanted: Objective
    last: Measured
    lag_now: float | None
    told: Mapping[Aim, datetime]

    @property
    def missed(self) -> list[Aim]:
        """Of which people have heard, or will."""
        known = [each for each in (self.last.lag, self.lag_now) if each is not None]
        latest = Measured(max(known, default=None), self.last.rows, self.last.rows_per_second)
        judged = self.wanted.judged(latest)
        return [aim for aim in Aim if aim in self.told or not judged.get(aim, True)]

    def row(self) -> tuple[object, ...]:
        """The cells of its line."""
        since = min((self.told[aim] for aim in self.missed if aim in self.told), default=None)
        return (
            self.link,
            *(_short(each) for each in (self.last.lag, self.lag_now)),
            self.wanted.lag,
            _short(self.last.rows_per_second),
            self.wanted.rows_per_second,
            self.missed,
            None if since is None else Ago(since),
        )


def show_all(
    engine: Engine, configuration: Configuration, pending: Mapping[str, Pending], found: Sequence[Standing]
) -> bool:
    """Every link that has an objective; True when one is missed. The answers of the sites are given."""
    stands = list(_stands(engine, configuration, pending, found))
    show("objectives", "Objectives", _COLUMNS, [each.row() for each in stands], if_any=True)
    for each in stands:
        if each.missed:
            problem(f"{each.link} misses its objective: {', '.join(each.missed)}", "objective")
    return any(each.missed for each in stands)


def _stands(
    engine: Engine, configuration: Configuration, pending: Mapping[str, Pending], found: Sequence[Standing]
) -> Iterator[_Stands]:
    last, missed, started = (
        objectives.last_measured(engine),
        objectives.missed(engine),
        lag.last_starts(engine),
    )
    for name, settings in configuration.objectives.items():
        for way, standing in _ways(name, found):
            link = link_name(name, way)
            if standing is None:
                since = lag.since(configuration, name, pending.get(link), started.get(link))
                now = seconds_until(pendulum.now("UTC"), since)
            else:
                now = lag.behind(standing, started.get(link))
            shown, wanted = link_name(configured_name(name), way), settings.objective
            yield _Stands(shown, wanted, last.get(link, Measured()), now, missed.get(link, {}))


def _ways(name: str, found: Sequence[Standing]) -> Iterator[tuple[Direction, Standing | None]]:
    """The links; those of a replication with what its ends have said."""
    if of_replication(name):
        mine = [each for each in found if each.name == configured_name(name)]
        yield from zip(Direction, mine, strict=False)
    else:
        yield from ((way, None) for way in Direction)


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, 1)
