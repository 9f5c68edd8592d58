"""JSON as a site holds it, which another one may have made up."""

from __future__ import annotations

import json
from typing import Any


def json_of(text: str | bytes) -> Any:
    """The value; None of what Python cannot hold, such as a number of 5,000 digits."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
