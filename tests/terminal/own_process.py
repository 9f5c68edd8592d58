"""`python -m concord` as a process of its own."""

import os
import subprocess
import sys

from tests.conftest import PROJECT


def concord(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "concord", *arguments]
    environment = os.environ | {"PYTHONPATH": f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}", "COLUMNS": "200"}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, cwd=PROJECT, timeout=200
    )
