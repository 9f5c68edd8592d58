"""Concord's configuration as a process of Airflow's finds it."""

from __future__ import annotations

import os

from airflow.configuration import conf

from concord.configuration.configuration import Configuration, config_path, load


def configuration() -> Configuration:
    """The configuration; `config_path` then finds the same file wherever this process and its children ask.

    `[concord] configuration` of airflow.cfg names it where CONCORD_CONFIG does not. Raises ConfigurationInvalid.
    """
    if "CONCORD_CONFIG" not in os.environ and (named := conf.get("concord", "configuration", fallback=None)):
        os.environ["CONCORD_CONFIG"] = named
    return load(config_path())
