"""The migrated repository is the one that the models describe, however often it is migrated."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from concord.messages.errors import RepositoryUnavailable
from concord.repository.migration import NEWEST, VERSION_TABLE, migrate
from concord.repository.models import Record
from concord.repository.opening import open_repository

MIGRATE = """
import sys
from concord.repository.migration import migrate
from concord.repository.opening import open_repository
engine = open_repository(sys.argv[1])
sys.stdin.readline()
migrate(engine)
"""


def constraints(connection: Connection) -> dict[str, list[object]]:
    """The parts that `compare_metadata` does not look at: checks and the names of keys."""
    inspector = inspect(connection)
    return {
        table: [
            sorted((check["name"], check["sqltext"]) for check in inspector.get_check_constraints(table)),
            inspector.get_pk_constraint(table),
            inspector.get_foreign_keys(table),
            inspector.get_unique_constraints(table),
        ]
        for table in Record.metadata.tables
    }


def test_the_migrated_tables_are_those_of_the_models(repository: Engine) -> None:
    with repository.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Record.metadata) == []


def test_the_migrated_constraints_are_those_of_the_models(new_url: Callable[[], str]) -> None:
    migrated, created = open_repository(new_url()), open_repository(new_url())
    migrate(migrated)
    Record.metadata.create_all(created)
    with migrated.connect() as one, created.connect() as other:
        assert constraints(one) == constraints(other)


def test_migrating_again_keeps_everything(repository: Engine) -> None:
    with repository.begin() as connection:
        connection.execute(text("INSERT INTO synchronization (name, epoch) VALUES ('london_capetown', 7)"))
    migrate(repository)
    with repository.connect() as connection:
        assert connection.scalar(text("SELECT epoch FROM synchronization")) == 7


def test_processes_that_migrate_at_once_all_find_it_done(url: str) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", MIGRATE, url]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]
    assert [(process.returncode, error) for process, error in zip(processes, errors, strict=True)] == [
        (0, "")
    ] * 4


def test_a_migration_that_fails_half_way_leaves_nothing_behind(url: str) -> None:
    engine = open_repository(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE conflict (id integer)"))
    with pytest.raises(DBAPIError, match="already exists"):
        migrate(engine)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["conflict"]


def test_the_version_that_airflow_keeps_in_the_same_database_is_left_alone(url: str) -> None:
    engine = open_repository(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num varchar(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('airflow')"))
    migrate(engine)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "airflow"


def test_what_counts_as_the_newest_version_is_the_last_of_the_files() -> None:
    config = Config()
    config.set_main_option("script_location", "concord.repository:migrations")
    assert ScriptDirectory.from_config(config).get_current_head() == NEWEST


def test_a_repository_that_is_there_is_found_so_without_alembic(url: str) -> None:
    migrate(open_repository(url))
    script = MIGRATE.replace("sys.stdin.readline()", "") + "print('alembic' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script, url]
    assert subprocess.run(command, env=environment, capture_output=True, check=True).stdout == b"False\n"


def test_a_repository_of_a_newer_concord_is_refused_in_words(repository: Engine) -> None:
    with repository.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(RepositoryUnavailable, match="Install the newer Concord"):
        migrate(repository)
