"""Hours of each day in a time zone, as `07:00-19:00 Europe/London`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

_TIME = r"((?:[01][0-9]|2[0-3]):[0-5][0-9])"
WRITTEN = rf"^{_TIME}-{_TIME} (\S+)$"


@dataclass(frozen=True, slots=True)
class Hours:
    """From one time of the day up to another; past midnight where that is the earlier one."""

    begin: time
    end: time
    zone: ZoneInfo

    def contain(self, at: datetime) -> bool:
        """Is it one of them, there? `at` knows its offset."""
        there = at.astimezone(self.zone).time()
        if self.begin < self.end:
            return self.begin <= there < self.end
        return there >= self.begin or there < self.end


@lru_cache(maxsize=64)
def parse_hours(text: str) -> Hours:
    """Raises ValueError."""
    found = re.match(WRITTEN, text)
    if found is None or found[3] not in available_timezones() or found[1] == found[2]:
        raise ValueError("not hours of a day in a time zone; write them as 07:00-19:00 Europe/London")
    return Hours(time.fromisoformat(found[1]), time.fromisoformat(found[2]), ZoneInfo(found[3]))
