"""Values in an order that is the same at every site: numbers by what they are worth, moments by their ISO text.

Whole and decimal numbers, dates and timestamps come as the database's exact text (UTC, ISO). A value that has no
such place is compared with nothing: NaN, infinite numbers, years before 1 or after 9999. A property test holds
`spark_jobs.steps.resolve` to the same order.
"""

from __future__ import annotations

import re
from decimal import Decimal

#: Spark (Java) and Python read these alike.
NUMBER = r"^-?[0-9]+(\.[0-9]+)?$"
MOMENT = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9:.]+(\+00)?)?|-?infinity)$"

_NUMBER, _MOMENT = re.compile(NUMBER), re.compile(MOMENT)


def sortable(text: str | None) -> tuple[Decimal | str] | None:
    """The number to compare in the place of a value; None where it cannot be compared.

    The values of one column are all numbers or all moments: texts are refused before (`maximum`, `minimum`).
    """
    if text is None:
        return None
    if _NUMBER.match(text):
        return (Decimal(text),)
    return (text,) if _MOMENT.match(text) else None
