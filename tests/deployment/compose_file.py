"""docker-compose.yaml as the tests read it: merges done, a recognizable value in each variable's place."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parents[2]
TEXT = (PROJECT / "docker-compose.yaml").read_text()

#: Compose's own escape `$$` is no reference.
REFERENCE = re.compile(r"(?<!\$)\$(?:\{([^}]*)\}|([A-Za-z_]\w*))")
REQUIRED = re.compile(r"([A-Z][A-Z0-9_]*):\?.+")


def references() -> list[str]:
    """The text in each `${…}`."""
    return [braced or bare for braced, bare in REFERENCE.findall(TEXT)]


def required_variables() -> set[str]:
    return {match[1] for reference in references() if (match := REQUIRED.fullmatch(reference))}


def value_of(variable: str) -> str:
    """The tests' values in a variable's place."""
    return f"value-of-{variable}"


def rendered() -> dict[str, Any]:
    """The file with every `${NAME:?…}` replaced by `value_of(NAME)`."""
    text = REFERENCE.sub(lambda found: value_of((found[1] or found[2]).partition(":")[0]), TEXT)
    return dict(yaml.safe_load(text))


def services(prefix: str = "") -> dict[str, dict[str, Any]]:
    return {name: service for name, service in rendered()["services"].items() if name.startswith(prefix)}


def connections() -> dict[str, dict[str, Any]]:
    """Airflow connection id → what AIRFLOW_CONN_… says, as the scheduler gets it."""
    environment = services()["airflow-scheduler"]["environment"]
    marked = {name: value for name, value in environment.items() if name.startswith("AIRFLOW_CONN_")}
    return {name.removeprefix("AIRFLOW_CONN_").lower(): json.loads(value) for name, value in marked.items()}


def one_shot(name: str) -> bool:
    """Whether somebody waits for this service to end."""
    awaited = (service.get("depends_on", {}).get(name, {}) for service in services().values())
    return any(wait.get("condition") == "service_completed_successfully" for wait in awaited)
