"""The fixtures of every test: databases, Java, an Airflow of its own, and the seed to repeat a run."""

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import psycopg
import pytest
from hypothesis import settings
from psycopg import sql

from concord.machine.java import java_home
from embedded.connect_server import ConnectServer, connect_server
from embedded.postgres import Server
from tests.given.releases import differ, release_of
from tests.suite import PROJECT, order, selection, whole_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.given.template_databases import TemplateDatabases

PLENTY = 6 * 1024**3  #: bytes of memory; the databases of a test take some 50 MB

# Airflow reads its settings when it is first imported, so they are fixed before any test module is. The
# user's own Airflow and its database must not be seen, whatever the shell has set.
for name in [name for name in os.environ if name.startswith(("AIRFLOW", "CONCORD_"))]:
    del os.environ[name]
AIRFLOW_HOME = Path(tempfile.mkdtemp(prefix="concord-airflow-"))
os.environ |= {
    "AIRFLOW_HOME": str(AIRFLOW_HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
}

# deadline: the first example of a test often pays for imports.
settings.register_profile("ci", print_blob=True, derandomize=False, deadline=None)
settings.load_profile("ci")

#: Runs small suites of their own, for the tests of this one.
pytest_plugins = ["pytester"]

#: Has the tests that are not about classic Spark run over Spark Connect instead.
OVER_CONNECT = "TESTS_OVER_CONNECT"

SPARK_DEFAULTS = """\
spark.ui.enabled                 false
spark.sql.shuffle.partitions     2
spark.driver.extraJavaOptions    -XX:+UseSerialGC -XX:TieredStopAtLevel=1
"""
#: What `make test` adds: Spark interprets its plans. To compile one takes longer than to run it over some rows.
SPARK_INTERPRETS = """\
spark.sql.codegen.wholeStage     false
spark.sql.codegen.factoryMode    NO_CODEGEN
"""
SPARK_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        metavar="COMMIT",
        help="leave out what `make test` leaves out (tests/suite/selection.py), the commit choosing the values",
    )
    parser.addoption("--record", action="store_true", help="record this run as the last one of all tests")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed here, to be able to print it, and let Ctrl-C be heard where tests send it.

    A shell ignores SIGINT in whatever it starts in the background, and so does all that is started there.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(random.randrange(2**32))
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(Failures(config))
    if config.getoption("record"):
        if chosen := [
            name for name in ("file_or_dir", "keyword", "markexpr", "quick") if config.getoption(name)
        ]:
            raise pytest.UsageError(
                f"--record records a run of all tests, and {', '.join(chosen)} chooses some"
            )
        config.pluginmanager.register(whole_run.Recorder(whole_run.commit_of(PROJECT), whole_run.RECORD))


class Failures:
    """Prints a line about each failure when it happens: the summary of a long run comes late."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            lines = report.longreprtext.splitlines()
            reason = next((line[1:].strip() for line in lines if line.startswith("E ")), "no error is shown")
            reporter = self._config.pluginmanager.get_plugin("terminalreporter")
            reporter.write(f"\nFAILED {report.nodeid} ({report.when}): {reason}\n", red=True)


def pytest_report_header(config: pytest.Config) -> list[str]:
    repeat = f"repeat these examples with: --hypothesis-seed={config.option.hypothesis_seed}"
    if (quick := config.getoption("quick")) is None:
        return [repeat]
    return [repeat, f"and these values of doubled parameters with: --quick={quick}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `--quick` leaves out. The rooms that changed come first, and the files that take long."""
    if (commit := config.getoption("quick")) is not None:
        omitted = set(selection.left_out(items, commit))
        config.hook.pytest_deselected(items=sorted(omitted, key=lambda item: item.nodeid))
        items[:] = [item for item in items if item not in omitted]
    recorded = whole_run.last()
    changed = order.changed_since(recorded.commit, PROJECT) if recorded else []
    items[:] = order.ordered(items, PROJECT, order.rooms_of(changed))


def pytest_unconfigure() -> None:
    shutil.rmtree(AIRFLOW_HOME, ignore_errors=True)


class Database(NamedTuple):
    """A fresh, empty database, the superuser's way to it, and its server."""

    name: str
    uri: str
    server: Server


#: Makes a database as a copy of the named template, an empty one without a name, on the server of the site that is
#: named; London's without one.
MakeDatabase = Callable[..., Database]

#: The server of a site, by its name. All sites have the same, but where `make test` has two versions of PostgreSQL.
ServerOf = Callable[[str], Server]


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The PostgreSQL server that the tests share. A test that stops or crashes one makes its own."""
    with _shared(request.session, tmp_path_factory, release_of("london")) as shared:
        yield shared


@pytest.fixture(scope="session")
def server_of(
    request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerOf]:
    """The shared server of each site: one for all, or one for London and one for the others."""
    if not differ():
        yield lambda _: server
        return
    with _shared(request.session, tmp_path_factory, release_of("capetown")) as others:
        yield lambda site: server if site == "london" else others


@contextmanager
def _shared(
    session: pytest.Session, tmp_path_factory: pytest.TempPathFactory, version: int
) -> Iterator[Server]:
    # It need not outlive the machine, and thousands of logins need not hash their passwords four thousand times each.
    without_care = {
        "fsync": "off",
        "full_page_writes": "off",
        "max_wal_size": "256MB",
        # Transactional replication reads the log.
        "wal_level": "logical",
        "max_replication_slots": "64",
        "max_wal_senders": "64",
        "max_slot_wal_keep_size": "50GB",
    }
    if version >= 16:
        without_care["scram_iterations"] = "1"
    with ExitStack() as stack:
        folder = _in_memory(stack) or tmp_path_factory.mktemp("postgres")
        shared = Server.create(folder / "server", version=version, settings=without_care)
        _hash_anew(shared)
        yield shared
        _keep_log(session, shared.log)
        shared.remove()


def _keep_log(session: pytest.Session, log: Path) -> None:
    """Copy a server's log to logs/ where a test of this worker has failed."""
    if session.testsfailed and log.exists():
        folder = PROJECT / "logs" / "tests" / os.environ.get("PYTEST_XDIST_WORKER", "alone")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, folder)


def _hash_anew(server: Server) -> None:
    """The superuser's password was hashed before the server had its settings."""
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        change = sql.SQL("ALTER ROLE {} PASSWORD {}")
        superuser.execute(change.format(sql.Identifier(server.superuser), sql.Literal(server.password)))


def _in_memory(stack: ExitStack) -> Path | None:
    """A folder in memory where there is plenty: making and dropping two databases a test is mostly making files."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it has a name that nobody can know
    if not memory.is_dir() or shutil.disk_usage(memory).free < PLENTY:
        return None
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="concord-tests-", dir=memory)))
    folder.chmod(0o711)  # a server that root starts belongs to somebody else
    return folder


@pytest.fixture
def database(server_of: ServerOf) -> Iterator[MakeDatabase]:
    """Call it for a fresh database, as often as needed; each is dropped when the test ends."""
    made: list[Database] = []

    def new_database(template: str = "template1", site: str = "london") -> Database:
        name, server = f"test_{os.urandom(6).hex()}", server_of(site)
        server.create_database(name, template)
        made.append(Database(name, server.uri(name), server))
        return made[-1]

    yield new_database
    for each in made:
        each.server.drop_database(each.name)


@pytest.fixture(scope="session")
def java(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """JAVA_HOME; sets what Spark needs for the rest of the session. Tests marked `spark` have it already."""
    configuration = tmp_path_factory.mktemp("spark")
    quick = request.config.getoption("quick") is not None
    (configuration / "spark-defaults.conf").write_text(SPARK_DEFAULTS + SPARK_INTERPRETS * quick)
    (configuration / "log4j2.properties").write_text(SPARK_LOGGING)
    home = java_home()
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("SPARK_HOME", raising=False)
        environment.setenv("JAVA_HOME", str(home))
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        environment.setenv("PYTHONPATH", f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}")
        environment.setenv("SPARK_CONF_DIR", str(configuration))
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield home


@pytest.fixture(scope="session")
def connect(
    request: pytest.FixtureRequest, java: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectServer]:
    """The Spark Connect server that the tests share. A test that stops or kills one makes its own."""
    log = tmp_path_factory.mktemp("connect") / "spark.log"
    with connect_server(log) as shared:
        yield shared
    _keep_log(request.session, log)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, java: object) -> Iterator["SparkSession"]:
    """One session in this process, with the settings of a real transmission."""
    from spark_jobs.connect import connected  # noqa: PLC0415 - most tests need no Spark
    from spark_jobs.session import start  # noqa: PLC0415

    if os.environ.get(OVER_CONNECT):
        with connected(request.getfixturevalue("connect").url) as made:
            yield made()
        return
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_SUBMIT_ARGS", "--master local[2] pyspark-shell")
        session = start()
    yield session
    session.stop()


@pytest.fixture
def classic() -> None:
    """For what Connect has not: a tracker of tasks, or a Spark that a test submits itself."""
    if os.environ.get(OVER_CONNECT):
        pytest.skip("asks classic Spark")


@pytest.fixture(scope="session")
def server_with_logins(server_of: ServerOf) -> Server:
    """London's server, with a reader's, an applier's and an application's login, which the other sites' has too."""
    from tests.given.site import create_logins  # noqa: PLC0415 - most tests need no site

    for each in {server_of(site) for site in ("london", "capetown")}:
        with psycopg.connect(each.uri("postgres"), autocommit=True) as superuser:
            create_logins(superuser)
    return server_of("london")


@pytest.fixture(scope="session")
def templates(server_with_logins: Server, server_of: ServerOf) -> "TemplateDatabases":
    """Provisioned databases to copy, with the logins of `server_with_logins`."""
    from tests.given.template_databases import TemplateDatabases  # noqa: PLC0415 - most tests need no site

    return TemplateDatabases(server_of)


@pytest.fixture(scope="session")
def airflow_logins(server_of: ServerOf) -> None:
    """The logins that connections of Airflow's have."""
    from tests.given.airflow_pair import make_logins  # noqa: PLC0415 - it brings Airflow

    for each in {server_of(site) for site in ("london", "capetown")}:
        make_logins(each)


@pytest.fixture(autouse=True)
def _java_for_spark(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("java")


@pytest.fixture(scope="session")
def airflow_home(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Path:
    """AIRFLOW_HOME with a migrated metadata database: what running a DAG needs. One worker migrates it for all."""
    folder = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = folder.parent  # of all workers
    migrated = folder / f"airflow-{testrun_uid}.db"
    database = AIRFLOW_HOME / "airflow.db"
    with migrated.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not migrated.exists():
            migrate = [sys.executable, "-m", "airflow", "db", "migrate"]
            subprocess.run(migrate, check=True, capture_output=True, cwd=PROJECT)
            shutil.copy(database, migrated)
    shutil.copy(migrated, database)
    from tests.given.quick_airflow import check_schemas_once  # noqa: PLC0415 - it brings jsonschema

    check_schemas_once()
    return AIRFLOW_HOME
