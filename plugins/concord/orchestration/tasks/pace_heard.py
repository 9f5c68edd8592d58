"""Of what a Spark application prints, the lines that say how far it is: they go to whoever wants to hear of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from concord.messages.inert import inert
from concord.messages.pace import Pace, Tell

#: In front of the JSON: the application's logger, as `spark_jobs.application` formats it.
_MARK = "concord.pace: "


def heard(lines: Iterable[str], tell: Tell) -> Iterator[str]:
    """The other lines, of Concord, Spark and Java; what is not seen in them is shown."""
    for line in lines:
        pace = _pace(line)
        if pace is None:
            yield f"{inert(line.rstrip().expandtabs(4))}\n"
        else:
            tell(pace)


def _pace(line: str) -> Pace | None:
    if not line.startswith(_MARK):
        return None
    try:
        return Pace.model_validate_json(line.removeprefix(_MARK))
    except ValidationError:  # somebody else's line
        return None
