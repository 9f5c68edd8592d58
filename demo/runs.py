"""One run of the pair through Airflow itself: `airflow dags test`, its output in a file."""

import re
from collections.abc import Mapping
from pathlib import Path

from demo.background import run
from demo.progress import Step
from demo.starting_point import SYNCHRONIZATION

DAG = f"synchronize__{SYNCHRONIZATION}"

#: How far back in the log the latest event is looked for.
_TAIL_BYTES = 64_000
_EVENT = re.compile(
    r'(?:\b(?P<task>begin|forward_link|reverse_link|complete|release)\b|step name="(?P<step>\w+)")'
)


def synchronize(environment: Mapping[str, str], log: Path, step: Step) -> None:
    """Run the DAG once and wait for it. Raises ProgramFailed, which says where the log is."""
    step.activity = lambda: activity(log)
    run(["airflow", "dags", "test", DAG], environment, log)


def activity(log: Path) -> str:
    """The run's present step, by the end of its log: `forward link: stage`."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        tail = file.read().decode(errors="replace")
    found = list(_EVENT.finditer(tail))
    if not found:
        return ""
    task = next((match["task"] for match in reversed(found) if match["task"]), None)
    words = (task, found[-1]["step"])  # a step that was taken before the task began is not its own
    return ": ".join(word.replace("_", " ") for word in words if word)
