"""A Python worker that Spark forks has nothing left to import, and reads no archive again."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

#: The daemon as Spark starts it, but for its loop.
STARTED = """
import runpy, sys, zipimport
import pyspark.daemon
pyspark.daemon.manager = lambda: print(
    pyspark.__file__,
    "pyspark.worker" in sys.modules,
    [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimport.zipimporter)],
)
runpy.run_module("spark_jobs.worker_daemon", run_name="__main__")
"""


def test_a_forked_worker_imports_nothing_and_reads_no_archive() -> None:
    # Spark has its daemon import pyspark from there
    archive = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    path = os.pathsep.join([str(archive), *filter(None, sys.path)])
    started = subprocess.run(
        [sys.executable, "-c", STARTED],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    assert started.stdout.split(maxsplit=1) == [f"{archive}/pyspark/__init__.py", "True []\n"]
