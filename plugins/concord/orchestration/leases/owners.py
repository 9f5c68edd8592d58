"""The holder of a lease, as the lease carries it: a DAG run of one Airflow, or a command; and the process of a
terminal.

Two Airflows with one repository give their runs equal ids. So each has a name of its own, in a Variable of Airflow's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import uuid4

from airflow.sdk import Variable
from airflow.sdk.types import DagRunProtocol

from concord.orchestration.surroundings import waiting_person
from concord.orchestration.surroundings.process import this_process

VARIABLE = "concord_airflow"
_WRITTEN = re.compile(r"(?P<name>.+?)(?: of Airflow (?P<airflow>\S+))?(?: in process (?P<process>\S+))?")


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """`synchronize__x/manual__… of Airflow 1f0c… in process 4711@…`; what does not apply is empty."""

    name: str  #: dag_id/run_id, or person/random
    airflow: str = ""
    process: str = ""

    @classmethod
    def parse(cls, written: str) -> LeaseOwner:
        """Any text is a name at least."""
        found = _WRITTEN.fullmatch(written)
        return cls(written) if found is None else cls(**found.groupdict(default=""))

    def __str__(self) -> str:
        airflow = f" of Airflow {self.airflow}" if self.airflow else ""
        return f"{self.name}{airflow}{f' in process {self.process}' if self.process else ''}"


def of_run(dag_run: DagRunProtocol) -> str:
    """The same for every task and every try of a DAG run."""
    process = this_process() if waiting_person.does_wait() else ""
    return str(LeaseOwner(f"{dag_run.dag_id}/{dag_run.run_id}", airflow_name(), process))


def of_command(person: str) -> str:
    """No other command is called so."""
    return str(LeaseOwner(f"{person}/{uuid4().hex}", process=this_process()))


def airflow_name() -> str:
    """This Airflow's name in its leases; the first task that asks gives it its name."""
    if (known := Variable.get(VARIABLE, default=None)) is not None:
        return str(known)
    about = "Concord: what this Airflow is called in leases; no other Airflow may have the same"
    Variable.set(VARIABLE, uuid4().hex[:12], description=about)
    return str(Variable.get(VARIABLE))  # of two that gave a name, one was later
