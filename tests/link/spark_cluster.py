"""A Spark standalone cluster of one master and two workers, from pyspark's own installation."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pyspark

from concord.link import LinkJob, TransmissionReport
from concord.orchestration.job_files import PROJECT, job_files
from embedded import ports

SPARK_HOME = Path(pyspark.__file__).parent
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
SECONDS_TO_START = 120.0
#: These processes live for seconds: the serial collector and the quick compiler start twice as fast.
SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class Cluster:
    """Every process leads a process group of its own, so that a worker dies with its executors."""

    def __init__(self, directory: Path, java_home: Path, environment: Mapping[str, str]) -> None:
        self._directory, self._environment = directory, {**environment, "JAVA_HOME": str(java_home)}
        # What executors import of Concord comes in the archive, or not at all.
        self._environment.pop("PYTHONPATH", None)
        self._environment |= {"SPARK_HOME": str(SPARK_HOME), "SPARK_DAEMON_MEMORY": "256m"}
        self._environment["SPARK_DAEMON_JAVA_OPTS"] = SHORT_LIVED
        port = ports.free()
        self.url = f"spark://{ports.HOST}:{port}"
        where = ["--host", ports.HOST, "--webui-port", "0"]
        self._processes = [self._start("master", MASTER, *where, "--port", str(port))]
        self._wait_for("master", "New state: ALIVE")
        for name in ("worker_1", "worker_2"):
            work = ["--cores", "1", "--memory", "512m", "--work-dir", str(directory / name)]
            self._processes.append(self._start(name, WORKER, *where, *work, self.url))
        for name in ("worker_1", "worker_2"):
            self._wait_for(name, "Successfully registered")

    def _start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self._directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [SPARK_HOME / "bin" / "spark-class", *command],
                env={**self._environment, "SPARK_CONF_DIR": str(self._settings())},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _settings(self) -> Path:
        """Daemons say in their logs when they are ready."""
        directory = self._directory / "conf"
        directory.mkdir(exist_ok=True)
        (directory / "log4j2.properties").write_text(
            "rootLogger.level = info\nrootLogger.appenderRef.stderr.ref = stderr\nappender.stderr.type = Console\n"
            "appender.stderr.name = stderr\nappender.stderr.target = SYSTEM_ERR\n"
            "appender.stderr.layout.type = PatternLayout\nappender.stderr.layout.pattern = %p %c{1}: %m%n\n"
        )
        return directory

    def _wait_for(self, name: str, words: str) -> None:
        log, end = self._directory / f"{name}.log", time.monotonic() + SECONDS_TO_START
        while words not in (said := log.read_text(errors="replace")):
            assert time.monotonic() < end, f"{name} was not ready in {SECONDS_TO_START} s: {said[-3000:]}"
            time.sleep(0.1)

    def executors_of(self, worker: int) -> list[str]:
        """Applications that had an executor on this worker."""
        return [found.name for found in (self._directory / f"worker_{worker}").glob("app-*")]

    def submit(self, job: LinkJob) -> "Submission":
        """spark-submit in client mode, the library as one archive, as the operator does it."""
        return Submission(self.url, job, self._environment)

    def kill_worker(self, worker: int) -> None:
        """SIGKILL the worker, its executors and their Python workers."""
        _kill(self._processes[worker])

    def stop(self) -> None:
        for process in self._processes:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Submission:
    """A link under way as a Spark application of its own."""

    def __init__(self, master: str, job: LinkJob, environment: Mapping[str, str]) -> None:
        self._files = job_files(job, TransmissionReport)
        files = self._files.__enter__()
        self._read_report = files.read_report
        command = [
            str(PROJECT / "spark_jobs" / "spark-submit"),
            "--master",
            master,
            "--py-files",
            str(files.library()),
        ]
        settings = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": SHORT_LIVED}
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        report = {"CONCORD_JOB": str(files.job), "CONCORD_REPORT": str(files.report)}
        self.process = subprocess.Popen(
            [*command, "--driver-memory", "512m", str(PROJECT / "spark_jobs" / "link.py")],
            env={**environment, **python, **report},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, seconds: float = 240.0) -> TransmissionReport:
        """Wait for its end. Raises the error it reported, with what Spark said in a note."""
        try:
            said = self._what_it_said(seconds)
            try:
                return self._read_report()
            except Exception as error:
                error.add_note(said)
                raise
        finally:
            self._files.__exit__(None, None, None)

    def _what_it_said(self, seconds: float) -> str:
        try:
            said, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            said, _ = self.process.communicate()
        return str(said)[-6000:]
