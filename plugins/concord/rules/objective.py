"""A link's objective: how long a change may wait, how many rows a second are written, and who needs to hear (S2-10,
S2-11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Aim(StrEnum):
    """The parts of an objective, as the configuration names them."""

    LAG = "lag"
    RATE = "rows_per_second"


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of a link, or a link while no run ends; None is unknown."""

    lag: float | None = None  #: seconds that a change has waited at most
    rows: int = 0
    rows_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Objective:
    """None is no objective."""

    lag: float | None = None  #: seconds
    rows_per_second: float | None = None

    def judged(self, measured: Measured) -> dict[Aim, bool]:
        """Aim → is it kept. Nothing of what is unknown; nor of a rate where a run had less than a second's rows."""
        kept = {}
        if self.lag is not None and measured.lag is not None:
            kept[Aim.LAG] = measured.lag <= self.lag
        rate = self.rows_per_second
        if rate is not None and measured.rows_per_second is not None and measured.rows >= rate:
            kept[Aim.RATE] = measured.rows_per_second >= rate
        return kept


def news(judged: Mapping[Aim, bool], missed: Collection[Aim], *, run_has_ended: bool) -> dict[Aim, bool]:
    """Those of the judged aims that somebody should hear of: missed only now, or kept again.

    A link that nothing waits for at this moment keeps nothing: only a run that has ended shows that it does.
    """
    return {
        aim: kept for aim, kept in judged.items() if kept == (aim in missed) and (run_has_ended or not kept)
    }


def waits_since(
    now: datetime, pending: int, oldest: datetime | None, last_start: datetime | None
) -> datetime | None:
    """The moment since which a change may have waited at a link's source; None is unknown.

    `pending` counts what the link has not sent, and `oldest` is when the first of these was changed. It may have been
    changed long before its commit, or at another site: what was there when the last completed run began, that carried.
    """
    if pending == 0:
        return now
    known = [moment for moment in (oldest, last_start) if moment is not None]
    return max(known, default=None)


def seconds_until(moment: datetime, since: datetime | None) -> float | None:
    """Never less than none: two clocks may differ a little."""
    return None if since is None else max(0.0, (moment - since).total_seconds())
