"""Concord as Airflow's plugin where Concord is a folder: the only file of this directory that Airflow runs.

An installed Concord is found by its entry point. Where both are there, this file leaves it to that one: Airflow
registers a plugin once, and calls the second an import error.
"""

from __future__ import annotations

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="concord"):
    from concord.orchestration.console.plugin import ConcordPlugin

    __all__ = ["ConcordPlugin"]
