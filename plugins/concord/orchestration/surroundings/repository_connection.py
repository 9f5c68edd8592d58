"""Where the repository is: the connection `concord_repository`, else a file under AIRFLOW_HOME."""

from __future__ import annotations

import logging
from pathlib import Path

from airflow.configuration import get_airflow_home
from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy import URL, Engine

from concord.orchestration.surroundings.connections import dialect, mask_password, options_of
from concord.repository.migration import migrate
from concord.repository.opening import open_repository

CONNECTION = "concord_repository"


def repository() -> Engine:
    """The repository, brought to this version. Raises ConnectionRefused or RepositoryUnavailable.

    The connection is a PostgreSQL database, or of type sqlite with the file as its host.
    """
    logging.getLogger("alembic").setLevel(
        logging.WARNING
    )  # or every task's log begins with two empty phrases
    engine = open_repository(_url())
    migrate(engine)
    return engine


def _url() -> URL:
    """Built from parts: a URL as text would hold the password where no mask knows it."""
    try:
        connection = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        return URL.create("sqlite", database=str(Path(get_airflow_home(), "concord.db")))
    mask_password(connection.password)
    if connection.conn_type == "sqlite":
        return URL.create("sqlite", database=connection.host)
    return _postgresql(connection)


def _postgresql(connection: Connection) -> URL:
    return URL.create(
        dialect(connection),
        username=connection.login,
        password=connection.password,
        host=connection.host,
        port=connection.port,
        database=connection.schema,
        query=options_of(connection),
    )
