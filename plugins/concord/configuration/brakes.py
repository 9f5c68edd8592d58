"""When a run is held for a person's approval: what can be set for a synchronization and for one table."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, StrictInt, WithJsonSchema

from concord.configuration.field import Settings
from concord.rules.brake import Brakes, Limit

_SHARE = r"([1-9][0-9]?|100) ?%"
_HINT = "not a limit; write a number of rows such as 10000, a share of the table such as 50%, both as a list, or never"


def _limit(value: object) -> object:
    """`50%`, `10000`, `[50%, 10000]` or `never`."""
    if value is None or isinstance(value, Limit):
        return value
    if value == "never":
        return Limit()
    amounts = value if isinstance(value, list | tuple) else [value]
    given = dict(map(_amount, amounts))
    if not given or len(given) < len(amounts):
        raise ValueError(_HINT)
    return Limit(**given)


def _amount(value: object) -> tuple[str, Any]:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return "rows", value
    if isinstance(value, str) and (share := re.fullmatch(_SHARE, value.strip())):
        return "share", int(share[1]) / 100
    raise ValueError(_HINT)


def _written(limit: Limit) -> object:
    """As the file has it."""
    share = [] if limit.share is None else [f"{round(limit.share * 100)}%"]
    amounts = [*share, *([] if limit.rows is None else [limit.rows])]
    return amounts if len(amounts) > 1 else next(iter(amounts), "never")


_ONE: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 0},
    {"type": "string", "pattern": f"^{_SHARE}$"},
]
LimitSetting = Annotated[
    Limit,
    BeforeValidator(_limit),
    PlainSerializer(_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "never"},
                *_ONE,
                {"type": "array", "items": {"anyOf": _ONE}, "minItems": 1, "maxItems": 2},
            ]
        }
    ),
]


class BrakeSettings(Settings):
    """How much one run of a link may do before it waits for `python -m concord approve`."""

    deletes: LimitSetting | None = Field(
        default=None,
        description="Rows of the target that may go: 50%, 10000, [50%, 10000] or never. Default: 50%.",
    )
    changes: LimitSetting | None = Field(
        default=None,
        description="Rows of the target that may be overwritten, likewise. Default: never held.",
    )
    smallest_table: StrictInt | None = Field(
        default=None, ge=0, description="Shares hold for tables of at least so many rows. Default: 1000."
    )

    oscillation: Literal["never"] | Annotated[StrictInt, Field(ge=2)] | None = Field(
        default=None,
        description="Times a row may come back in answer to each write, run after run, or never. Default: 10.",
    )

    def over(self, brakes: Brakes) -> Brakes:
        """These settings, and `brakes` where they say nothing."""
        given = {name: value for name in Brakes.model_fields if (value := getattr(self, name)) is not None}
        if self.oscillation == "never":
            given["oscillation"] = None
        return brakes.model_copy(update=given)
