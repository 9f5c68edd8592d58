"""`python -m demo.standalone`: the components of an Airflow, as `airflow standalone` runs them, until one of them ends.

Without their log servers: these listen at every address of the machine, and here the page reads the logs' files.
"""

import os
import subprocess
import sys

_AIRFLOW = [sys.executable, "-m", "airflow"]
_COMPONENTS = (
    ["api-server"],
    ["dag-processor"],
    ["scheduler", "--skip-serve-logs"],
    ["triggerer", "--skip-serve-logs"],
)


def main() -> int:
    """The exit status of the migration if it fails, else of the first component to end; 1 where that is 0."""
    migrated = subprocess.run([*_AIRFLOW, "db", "migrate"], check=False).returncode
    if migrated:
        return migrated
    for component in _COMPONENTS:
        subprocess.Popen([*_AIRFLOW, *component])
    _, status = os.wait()
    return os.waitstatus_to_exitcode(status) or 1


if __name__ == "__main__":
    sys.exit(main())
