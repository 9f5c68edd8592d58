"""`python -m concord` typed within the test's own process: the same exit status and the same lines, in no time."""

from typing import NamedTuple

import pytest

from concord.__main__ import main


class Answer(NamedTuple):
    """The output that a person at a terminal sees."""

    status: int
    out: str
    err: str


class Terminal:
    """Types commands; the settings that a command makes for Airflow end with the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        for name, value in {"_AIRFLOW_PROCESS_CONTEXT": "server", "COLUMNS": "200"}.items():
            monkeypatch.setenv(name, value)

    def __call__(self, *words: str) -> Answer:
        self._capsys.readouterr()
        try:
            status = main(["-v", *words])
        except SystemExit as refused:
            status = int(str(refused.code))
        return Answer(status, *self._capsys.readouterr())
