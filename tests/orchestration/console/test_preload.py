"""Processes that fork tasks have imported what a link needs, so that no task imports it again."""

import subprocess
import sys

import pytest

NEEDED = ["concord.databases.postgresql.compare.site", "psycopg", "spark_jobs.link"]
#: Each command is a copy of one process, which has imported what they all do: it takes seconds.
ASKED = f"""
import os, sys
import airflow.plugins_manager, concord.dags, pyspark.sql.connect.session
commands = sys.argv[1:]
assert not set({NEEDED}) & set(sys.modules)
for command in commands:
    if os.fork() == 0:
        sys.argv = ["airflow", command]
        import concord.orchestration.console.plugin
        print(command, [name for name in {NEEDED} if name in sys.modules], flush=True)
        os._exit(0)
    os.wait()
"""
FORKING = ["scheduler", "celery", "edge"]
OTHER = "api-server"


@pytest.fixture(scope="module")
def imported() -> dict[str, str]:
    """By command, of the modules that a link needs, those that it has imported."""
    command = [sys.executable, "-c", ASKED, *FORKING, OTHER]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {
        name: found
        for name, _, found in (line.partition(" ") for line in done.stdout.splitlines())
        if name in (*FORKING, OTHER)
    }


@pytest.mark.parametrize("command", FORKING)
def test_a_process_that_forks_tasks_has_a_links_modules(imported: dict[str, str], command: str) -> None:
    assert imported[command] == str(NEEDED)


def test_another_process_of_airflows_imports_none_of_them(imported: dict[str, str]) -> None:
    assert imported[OTHER] == "[]"
