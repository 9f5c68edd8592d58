"""How the repository's tables get from any earlier version to this one."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from concord.messages.errors import RepositoryUnavailable
from concord.repository.opening import reading

#: Alembic's own table. Not its default name: a database shared with Airflow has one of those already.
VERSION_TABLE = "repository_version"

#: The last of the migrations; a test holds it to their files.
NEWEST = "0009"

#: The advisory lock that lets one process migrate at a time on PostgreSQL: "concord" in ASCII.
_MIGRATION_LOCK = int.from_bytes(b"concord")


def migrate(engine: Engine) -> None:
    """Bring the repository to the newest version; nothing happens when it is there.

    One transaction, which two processes take one after the other: SQLite begins with the write lock held.
    Raises RepositoryUnavailable when a newer Concord has migrated it already.
    """
    if _is_newest(engine):
        return
    with engine.begin() as connection:
        _wait_for_others(connection)
        _upgrade(connection)


def _is_newest(engine: Engine) -> bool:
    """One question, before Alembic is imported: that takes half a second of every task."""
    try:
        with reading(engine).connect() as connection:
            return bool(connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == NEWEST)
    except (OperationalError, ProgrammingError):  # not made yet; or not to be reached, as will be told
        return False


def _wait_for_others(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})


def _upgrade(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415 - see _is_newest
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()  # no ini file: there is nowhere for a URL to be written down
    config.set_main_option("script_location", "concord.repository:migrations")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise RepositoryUnavailable(
            f"The repository has a version that this Concord does not know ({error}). Install the newer "
            "Concord that migrated it, or start with an empty repository: the sites hold all that matters."
        ) from error
