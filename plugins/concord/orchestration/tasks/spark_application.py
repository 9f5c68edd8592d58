"""A Spark application of Concord's, over an Airflow connection: a job goes in, a report comes out.

Over a connection of type `spark_connect` the driver is the Airflow task itself. Over one of type `spark` it is a
process that Spark's own spark-submit starts.
"""

from __future__ import annotations

from typing import Any, cast

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from pydantic import BaseModel

from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Tell, logged
from concord.orchestration.surroundings.connections import airflow_connection
from concord.orchestration.tasks import spark_settings
from concord.orchestration.tasks.job_files import JobFiles, Report, job_files
from concord.orchestration.tasks.pace_heard import heard
from spark_jobs.application import module, work_of
from spark_jobs.interruption import interrupt_all

logger = logger_named("concord.application")


class SparkApplication(SparkSubmitOperator):
    """Runs `spark_jobs.<application>`; what a subclass does before and after is its own.

    Submitted, logins travel in a file of mode 0600 that lives as long as the submission. Memory then comes from the
    arguments, else from the Spark connection's extra (`driver-memory`, `executor-memory`), else it is 2 GiB each.
    """

    template_fields = tuple(field for field in SparkSubmitOperator.template_fields if field != "env_vars")

    def __init__(self, *, application: str, **kwargs: Any) -> None:
        super().__init__(application=str(module(application)), **kwargs)
        self._works_as = application
        #: The function that hears how far it is; a task's log has a line a while.
        self.tell: Tell | None = None

    def submit(self, job: BaseModel, report: type[Report]) -> Report:
        """Have the job done, and wait for the report. Raises the ConcordError that stopped it."""
        if airflow_connection(self._conn_id).conn_type == SparkConnectHook.conn_type:
            return cast("Report", self._done_here(job))
        return self._submitted(job, report)

    def hears(self) -> Tell:
        """Whom to tell how far the work is."""
        return self.tell or logged(self.log.info)

    def on_kill(self) -> None:
        """End what Spark and the databases do for this task."""
        if self._hook is not None:
            super().on_kill()
        else:  # the driver is this process
            interrupt_all()

    def _done_here(self, job: BaseModel) -> BaseModel:
        from spark_jobs.connect import connected  # noqa: PLC0415 - who submits needs none of it

        url = SparkConnectHook(self._conn_id).get_connection_url()
        with connected(url, str(self.name)) as spark:
            work = work_of(self._works_as)
            return work(job, spark, lambda step: log_event(logger, "step", name=step), self.hears())

    def _submitted(self, job: BaseModel, report: type[Report]) -> Report:
        with job_files(job, report) as files:
            self._hook = self._prepared_hook(files)
            self._listen(self._hook)
            try:
                self._hook.submit(self.application, env=spark_settings.environment())
            except (KeyboardInterrupt, AirflowFailException):  # a person at a terminal pressed Ctrl-C
                self.on_kill()
                raise
            except AirflowException:
                # Its message is the command and the last lines, both in the log; the report says more.
                self.log.info("spark-submit ended with an error")
            finally:
                _close_output(self._hook)
            return files.read_report()

    def _listen(self, hook: SparkSubmitHook) -> None:
        """The application's output goes to the log, but for how far it is."""
        log_lines, tell = hook._process_spark_submit_log, self.hears()
        hook._process_spark_submit_log = lambda itr: log_lines(heard(itr, tell))  # type: ignore[method-assign]

    def _prepared_hook(self, files: JobFiles[Any]) -> SparkSubmitHook:
        """Everything that needs connections or files, set only now: nothing of it is a rendered template."""
        extra = airflow_connection(self._conn_id).extra_dejson
        if self._spark_binary is None and "spark-binary" not in extra:
            self._spark_binary = spark_settings.spark_submit()
        self._driver_memory = self._driver_memory or spark_settings.memory(extra, "driver")
        self._executor_memory = self._executor_memory or spark_settings.memory(extra, "executor")
        submission = self._get_hook()._connection
        spark_settings.require_client_mode(self._conn_id, submission["deploy_mode"])
        self.conf = spark_settings.configuration(submission["master"], self.conf or {})
        self.py_files = spark_settings.library(submission["master"], files)
        self.application_args = [str(files.job), str(files.report)]
        return self._get_hook()


def _close_output(hook: SparkSubmitHook) -> None:
    """The hook leaves its end of the pipe to the garbage collector."""
    if hook._submit_sp and hook._submit_sp.stdout:
        hook._submit_sp.stdout.close()
