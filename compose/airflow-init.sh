#!/usr/bin/env bash
# Brings Airflow's database to this version and sets the password of `admin`. Safe to run again.
set -euo pipefail

airflow db migrate

# SimpleAuthManager (for development only) would invent a password and print it in the log; it takes this one instead.
umask 077
python - <<'PYTHON'
import json
import os
from pathlib import Path

passwords = {"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}
Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]).write_text(json.dumps(passwords))
PYTHON
