"""Parse JSON that a site stores. Another site may have written anything there."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The parsed value; None where Python cannot represent it, such as a number of 5,000 digits."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
