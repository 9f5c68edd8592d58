"""Logs are events: a constant sentence plus fields. Values are escaped; no secret is ever a field."""

from __future__ import annotations

import json
import logging


def log_event(logger: logging.Logger, sentence: str, **fields: object) -> None:
    """One line: `changes acquired table="public.flights" rows=120`. Newlines and control codes stay inert."""
    shown = " ".join(f"{name}={json.dumps(value, default=str)}" for name, value in fields.items())
    logger.info(
        "%s %s", sentence, shown, extra={"event": sentence, **{f"concord_{k}": v for k, v in fields.items()}}
    )
