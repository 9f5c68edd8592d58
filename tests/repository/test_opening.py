"""The repository is opened safely or refused in words that hold no password."""

import logging
import os
import threading
from datetime import datetime
from pathlib import Path

import pendulum
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError, StatementError

from concord.messages.errors import ConnectionRefused, RepositoryUnavailable
from concord.repository.maintenance import last_completed, mark_completed
from concord.repository.migration import migrate
from concord.repository.opening import open_repository, reading

CANARY = "s3cret/ canary"


def test_sqlite_runs_in_wal_mode_with_foreign_keys(tmp_path: Path) -> None:
    with open_repository(f"sqlite:///{tmp_path}/new/folder/repository.db").connect() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1
        assert connection.scalar(text("PRAGMA busy_timeout")) == 30_000


def test_a_sqlite_repository_is_its_accounts_alone_with_the_files_beside_it(tmp_path: Path) -> None:
    """Whatever the umask says, since the conflicts there hold rows."""
    before = os.umask(0)
    try:
        engine = open_repository(f"sqlite:///{tmp_path}/repository.db")
        migrate(engine)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE mine (id int)"))
            modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {f"repository.db{end}": 0o600 for end in ("", "-wal", "-shm")}


@pytest.mark.parametrize(("found", "then"), [(0o644, 0o600), (0o660, 0o660), (0o640, 0o640)])
def test_a_sqlite_repository_that_everybody_could_read_is_closed(
    tmp_path: Path, found: int, then: int
) -> None:
    """An earlier version made it so; a group that somebody let in stays."""
    file, beside = tmp_path / "repository.db", tmp_path / "repository.db-backups"
    file.touch()
    file.chmod(found)
    beside.mkdir(mode=0o755)
    with open_repository(f"sqlite:///{file}").connect():
        assert file.stat().st_mode & 0o777 == then
    assert beside.stat().st_mode & 0o777 == 0o755, "no other file is touched"


def test_a_link_of_an_unknown_synchronization_is_refused_by_the_database(repository: Engine) -> None:
    orphan = text("INSERT INTO link VALUES ('nobody', 'forward', 'london', 'capetown', NULL)")
    with pytest.raises(IntegrityError), repository.begin() as connection:
        connection.execute(orphan)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        f"mysql://u:{CANARY}@h/d",
        f"postgresql://u:{CANARY}@h:port/d",
        CANARY,
    ],
)
def test_what_cannot_be_a_repository_is_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(ConnectionRefused) as refused:
        open_repository(url)
    assert "canary" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_server_that_does_not_answer_is_a_transient_error_without_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    engine = open_repository("postgresql://concord:s3cret-canary@127.0.0.1:1/repository")
    with pytest.raises(RepositoryUnavailable, match="concord_repository") as unavailable:
        migrate(engine)
    assert unavailable.value.transient
    assert "canary" not in f"{unavailable.value} {unavailable.value.facts} {engine!r} {caplog.text}"


def test_a_file_that_is_no_database_is_named_as_the_trouble(tmp_path: Path) -> None:
    (tmp_path / "repository.db").write_text("this is not a database, whatever its name says")
    with pytest.raises(RepositoryUnavailable, match="file is not a database"):
        migrate(open_repository(f"sqlite:///{tmp_path}/repository.db"))


def test_a_writer_that_waits_too_long_for_another_gets_a_transient_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concord.repository.opening.BUSY_SECONDS", 0.05)
    engine = open_repository(f"sqlite:///{tmp_path}/repository.db")
    with engine.begin(), pytest.raises(RepositoryUnavailable, match="locked"):
        migrate(engine)


def test_readers_do_not_wait_for_a_writer(repository: Engine) -> None:
    with repository.begin() as connection:
        connection.execute(text("INSERT INTO synchronization (name, epoch) VALUES ('a', 1)"))
        with reading(repository).begin() as reader:
            assert reader.scalar(text("SELECT count(*) FROM synchronization")) == 0


def test_writers_that_read_first_wait_for_each_other_and_lose_nothing(repository: Engine) -> None:
    """Without BEGIN IMMEDIATE, SQLite fails the second one at once: its snapshot is stale."""
    with repository.begin() as connection:
        connection.execute(text("INSERT INTO synchronization (name, epoch) VALUES ('a', 0)"))

    def count_up() -> None:
        for _ in range(10):
            with repository.begin() as connection:
                lock = " FOR UPDATE" if connection.dialect.name == "postgresql" else ""
                epoch = connection.scalar(text(f"SELECT epoch FROM synchronization{lock}")) or 0
                connection.execute(text("UPDATE synchronization SET epoch = :epoch"), {"epoch": epoch + 1})

    threads = [threading.Thread(target=count_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with repository.connect() as connection:
        assert connection.scalar(text("SELECT epoch FROM synchronization")) == 40


def test_a_moment_comes_back_as_the_same_moment_in_utc(repository: Engine) -> None:
    # S1-28; 02:30 on that night happened twice in Paris, and this is the second time
    moment = pendulum.datetime(2026, 10, 25, 2, 30, 0, 123_456, tz="Europe/Paris", fold=1)
    mark_completed(repository, "log_purge", moment)
    remembered = last_completed(repository, "log_purge")
    assert remembered is not None
    assert remembered.isoformat() == "2026-10-25T01:30:00.123456+00:00"


def test_a_moment_comes_back_in_utc_whatever_the_session_says(repository: Engine) -> None:
    mark_completed(repository, "log_purge", pendulum.datetime(2026, 7, 1, 12))
    if repository.dialect.name == "postgresql":
        with repository.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            database = connection.scalar(text("SELECT current_database()"))
            connection.execute(text(f"ALTER DATABASE {database} SET timezone = 'Asia/Tokyo'"))
    remembered = last_completed(repository, "log_purge")
    assert remembered is not None
    assert remembered.isoformat() == "2026-07-01T12:00:00+00:00"


def test_a_moment_without_a_zone_is_refused(repository: Engine) -> None:
    with pytest.raises(StatementError, match="has no time zone"):
        mark_completed(repository, "log_purge", datetime(2026, 7, 1, 12))  # noqa: DTZ001


def test_a_housekeeping_job_remembers_when_it_last_completed(repository: Engine) -> None:
    assert last_completed(repository, "log_purge") is None
    for day in (1, 2):
        mark_completed(repository, "log_purge", pendulum.datetime(2026, 7, day))
    assert last_completed(repository, "log_purge") == pendulum.datetime(2026, 7, 2)
