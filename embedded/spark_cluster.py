"""A Spark standalone cluster of one master and some workers of one core, from pyspark's own installation."""

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pyspark

from concord.orchestration.tasks.spark_settings import SHORT_LIVED
from embedded import ports, private_file, session

SPARK_HOME = Path(pyspark.__file__).parent
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
SECONDS_TO_START = 120.0
#: Of the daemons and of each application. The secret itself is what _SPARK_AUTH_SECRET holds in the environment; a
#: driver insists on seeing the setting of the same purpose.
AUTHENTICATED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "see-the-environment",
    "spark.network.crypto.enabled": "true",
}


class Cluster:
    """Every process leads a process group of its own, so that a worker dies with its executors."""

    def __init__(
        self,
        directory: Path,
        java_home: Path,
        environment: Mapping[str, str],
        workers: int = 2,
        memory: str = "512m",
        settings: Mapping[str, str] = AUTHENTICATED,
    ) -> None:
        self._settings_of_daemons = settings
        self._directory, self.environment = directory, {**environment, "JAVA_HOME": str(java_home)}
        # Executors import Concord from the archive, or not at all.
        self.environment.pop("PYTHONPATH", None)
        self.environment |= {"SPARK_HOME": str(SPARK_HOME), "SPARK_DAEMON_MEMORY": "256m"}
        self.environment["SPARK_DAEMON_JAVA_OPTS"] = SHORT_LIVED
        self.secret = {
            "_SPARK_AUTH_SECRET": secrets.token_urlsafe(32)
        }  #: for the environment of its applications
        self.environment |= self.secret
        self._processes: list[subprocess.Popen[bytes]] = []
        self._watchdogs: list[subprocess.Popen[bytes]] = []
        port = ports.free()
        self.url = f"spark://{ports.HOST}:{port}"
        try:
            self._start_all(port, [f"worker_{number}" for number in range(1, workers + 1)], memory)
        except BaseException:
            self.stop()
            raise

    def _start_all(self, port: int, workers: Sequence[str], memory: str) -> None:
        where = ["--host", ports.HOST, "--webui-port", "0"]
        self._start("master", MASTER, *where, "--port", str(port))
        self._wait_for("master", "New state: ALIVE")
        for name in workers:
            work = ["--cores", "1", "--memory", memory, "--work-dir", str(self._directory / name)]
            self._start(name, WORKER, *where, *work, self.url)
        for name in workers:
            self._wait_for(name, "Successfully registered")

    def _start(self, name: str, *command: str) -> None:
        with open(self._directory / f"{name}.log", "wb", opener=private_file.opener) as log:
            process = subprocess.Popen(
                [SPARK_HOME / "bin" / "spark-class", *command],
                env={**self.environment, "SPARK_CONF_DIR": str(self._settings())},
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=private_file.UMASK,
            )
        self._processes.append(process)
        self._watchdogs.append(session.guard(process.pid))

    def _settings(self) -> Path:
        """Daemons say in their logs when they are ready; authenticated, they answer nobody without the secret."""
        directory = self._directory / "conf"
        directory.mkdir(exist_ok=True)
        lines = [f"{name} {value}" for name, value in self._settings_of_daemons.items()]
        (directory / "spark-defaults.conf").write_text("\n".join(lines))
        (directory / "log4j2.properties").write_text(
            "rootLogger.level = info\nrootLogger.appenderRef.stderr.ref = stderr\nappender.stderr.type = Console\n"
            "appender.stderr.name = stderr\nappender.stderr.target = SYSTEM_ERR\n"
            "appender.stderr.layout.type = PatternLayout\nappender.stderr.layout.pattern = %p %c{1}: %m%n\n"
        )
        return directory

    def _wait_for(self, name: str, words: str) -> None:
        log, end = self._directory / f"{name}.log", time.monotonic() + SECONDS_TO_START
        while words not in (said := log.read_text(errors="replace")):
            if time.monotonic() > end:
                raise TimeoutError(f"{name} was not ready in {SECONDS_TO_START} s: {said[-3000:]}")
            time.sleep(0.1)

    def executors_of(self, worker: int) -> list[str]:
        """Applications that had an executor on this worker."""
        return [found.name for found in (self._directory / f"worker_{worker}").glob("app-*")]

    def kill_worker(self, worker: int) -> None:
        """SIGKILL the worker, its executors and their Python workers."""
        _kill(self._processes[worker])

    def kill_executor(self, worker: int) -> None:
        """SIGKILL the worker's executors, and neither itself nor their Python workers: it starts new ones.

        Raises AssertionError where it has none.
        """
        below = psutil.Process(self._processes[worker].pid).children(recursive=True)
        executors = [each for each in below if _is_executor(each)]
        assert executors, "the worker has no executor"
        for each in executors:
            each.kill()

    def stop(self) -> None:
        for process in self._processes:
            _kill(process)
        for watchdog in self._watchdogs:
            session.release(watchdog)


def _is_executor(process: psutil.Process) -> bool:
    try:
        return "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
    except psutil.Error:  # it has ended meanwhile
        return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
