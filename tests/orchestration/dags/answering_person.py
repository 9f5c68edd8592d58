"""A person whom Airflow knows answers the questions of a DAG; and the scheduler, those that nobody answers."""

import threading
import time
from collections.abc import Mapping

from airflow.api_fastapi.core_api.datamodels.hitl import UpdateHITLDetailPayload
from airflow.api_fastapi.core_api.routes.public.hitl import update_hitl_detail
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState


class Ada:
    """A person whom Airflow knows."""

    def get_id(self) -> str:
        return "ada"

    def get_name(self) -> str:
        return "Ada"


class Answering(threading.Thread):
    """Answers each question by what its subject begins with, as the REST API does when a button is pressed.

    Where that is None, nobody does: the scheduler answers, last, when the time of the question has passed.
    """

    def __init__(self, dag_id: str, answers: Mapping[str, tuple[str, str | None] | None]) -> None:
        super().__init__(daemon=True)
        self.dag_id, self.answers, self.bodies = dag_id, dict(answers), dict[str, str]()

    def run(self) -> None:
        deadline = time.monotonic() + 60
        while self.answers and time.monotonic() < deadline:
            with create_session() as session:
                for ti in session.query(TaskInstance).filter_by(
                    dag_id=self.dag_id, state=TaskInstanceState.AWAITING_INPUT
                ):
                    asked = session.get(HITLDetail, ti.id)
                    assert asked is not None
                    key = asked.subject.partition(" [")[0]
                    self.bodies[key] = str(asked.body)
                    answer = self.answers[key]
                    if answer is None:
                        continue
                    del self.answers[key]
                    option, row = answer
                    params = {} if row is None and not asked.params else {"row": row}
                    given = UpdateHITLDetailPayload(chosen_options=[option], params_input=params)
                    update_hitl_detail(
                        ti.dag_id, ti.run_id, ti.task_id, given, Ada(), session, map_index=ti.map_index
                    )
            if not any(self.answers.values()) and self.answers.keys() <= self.bodies.keys():
                SchedulerJobRunner(Job()).check_awaiting_input_timeouts()
                self.answers.clear()
            time.sleep(0.2)
