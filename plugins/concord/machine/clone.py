"""Whether Concord runs from a clone of its project, or is installed as a package."""

from __future__ import annotations

from pathlib import Path

#: Above plugins/concord, in a clone.
_ROOT = Path(__file__).parents[3]
_DAGS = Path("dags", "concord_dags.py")


def clone() -> Path | None:
    """The clone's directory; None where Concord is installed."""
    return _ROOT if (_ROOT / _DAGS).exists() else None
