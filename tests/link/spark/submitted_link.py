"""A link as a Spark application on a cluster, submitted as the operator does it."""

import subprocess
import sys

from concord.jobs.link import LinkJob, TransmissionReport
from concord.orchestration.tasks import spark_settings
from concord.orchestration.tasks.job_files import PROJECT, job_files
from concord.orchestration.tasks.spark_settings import SHORT_LIVED
from embedded.spark_cluster import AUTHENTICATED, Cluster
from spark_jobs.application import module


class Submission:
    """A link under way: spark-submit in client mode, the library as one archive."""

    def __init__(self, cluster: Cluster, job: LinkJob) -> None:
        self._files = job_files(job, TransmissionReport)
        files = self._files.__enter__()
        self._read_report = files.read_report
        command = [
            spark_settings.spark_submit(),
            "--master",
            cluster.url,
            "--py-files",
            str(files.library()),
        ]
        settings = {
            **AUTHENTICATED,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SHORT_LIVED,
        }
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        self.process = subprocess.Popen(
            [*command, "--driver-memory", "512m", str(module("link")), str(files.job), str(files.report)],
            env={**cluster.environment, **python, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'plugins'}"},
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
