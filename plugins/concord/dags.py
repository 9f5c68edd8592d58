"""The names that a DAG file of a team's own takes from Concord: `all_dags`, and `ConcordTaskGroup` for a DAG of the
team's.

Airflow reads a file that has the words airflow and dag in it.
"""

from __future__ import annotations

from concord.orchestration.dags.configured import all_dags
from concord.orchestration.dags.task_group import ConcordTaskGroup

__all__ = ["ConcordTaskGroup", "all_dags"]
