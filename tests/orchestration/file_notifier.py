"""A notifier that writes into a file, and the connection that names it."""

import json
from pathlib import Path
from typing import ClassVar

from airflow.sdk import BaseNotifier, Context

TEXT = "{{ concord.conflicts }} of {{ concord.acquired }}: {{ concord.tables }}; {{ concord.message }}"


class FileNotifier(BaseNotifier):
    """Writes what it is told into a file."""

    template_fields: ClassVar = ("text",)

    def __init__(self, path: str, text: str) -> None:
        super().__init__()
        self.path, self.text = path, text

    def notify(self, context: Context) -> None:
        with Path(self.path).open("a") as file:
            file.write(self.text + "\n")


def connection(notifier: str, **extra: str) -> str:
    """An Airflow connection as AIRFLOW_CONN_… holds it."""
    return json.dumps({"conn_type": "generic", "extra": {"notifier": notifier, **extra}})
