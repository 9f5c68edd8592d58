"""Processes that fork tasks have imported what a link needs, so that no task imports it again."""

import subprocess
import sys

import pytest

NEEDED = ["concord.databases.postgresql.compare.site", "psycopg", "spark_jobs.link"]
ASKED = f"""
import sys
sys.argv = ["airflow", sys.argv[1]]
import concord.orchestration.console.plugin
print([name for name in {NEEDED} if name in sys.modules])
"""


def imported(command: str) -> str:
    done = subprocess.run([sys.executable, "-c", ASKED, command], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", ["scheduler", "celery", "edge"])
def test_a_process_that_forks_tasks_has_a_links_modules(command: str) -> None:
    assert imported(command) == str(NEEDED)


def test_another_process_of_airflows_imports_none_of_them() -> None:
    assert imported("api-server") == "[]"
