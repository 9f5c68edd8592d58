"""Logs are events: a constant sentence plus fields. Values are escaped; no secret is ever a field."""

from __future__ import annotations

import json
import logging

from concord.messages.inert import inert


def logger_named(name: str) -> logging.Logger:
    """The logger of this name. Each of its messages is one line, and shows the signs in it that are not seen."""
    made = logging.getLogger(name)
    made.addFilter(_inert)  # once, however often
    return made


def _inert(record: logging.LogRecord) -> bool:
    record.msg, record.args = inert(record.getMessage()), None
    return True


def log_event(logger: logging.Logger, sentence: str, **fields: object) -> None:
    """One line: `changes acquired table="public.flights" rows=120`. Newlines and control codes stay inert."""
    shown = " ".join(f"{name}={json.dumps(value, default=str)}" for name, value in fields.items())
    logger.info(
        "%s %s", sentence, shown, extra={"event": sentence, **{f"concord_{k}": v for k, v in fields.items()}}
    )
