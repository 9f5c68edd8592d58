"""Runs pytest, and writes down in a file how its first failure came about: `python -P judged.py FILE pytest's words`.

Only two failures tell that a test has found an error:

- An assertion does not hold. An error that should have come and did not is one, and so is `[only] = found` in a test.
- The product or its database refuses, where the test had it do something.

Whatever ends a test otherwise says only that it could not be run. It ended in a fixture, while pytest collects, or by
taking too long. Or it ended by a name that is not there, or by a statement that the database cannot make sense of.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import psycopg
import pytest

#: The product's own tree, by name: the planted error may stand where importing it fails.
REFUSAL = "ConcordError"
#: A database that does not answer refuses nothing.
AWAY = {"SiteUnavailable", "RepositoryUnavailable"}
DATA_REFUSED = (
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.CardinalityViolation,
)

#: Whoever raises these has written something that is no program.
NO_PROGRAM = (NameError, AttributeError, TypeError, ImportError, SyntaxError, psycopg.ProgrammingError)
#: The same as the product tells it, which may not hand on what the database said. 42501 is a privilege that lacks.
TOLD_OF_NO_PROGRAM = re.compile(
    r"SQLSTATE 42(?!501)|\b(Name|Attribute|Type|Import|ModuleNotFound|Syntax|UnboundLocal)Error\b"
)


class Judge:
    """A plugin of pytest's. A test's own failure stands, whatever its fixtures say afterwards."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        report: pytest.TestReport = yield
        if report.failed and call.excinfo is not None:
            where = _fault(call.excinfo) if call.when == "call" else call.when
            self._write(where, f"{call.excinfo.typename}: {call.excinfo.value}", item.nodeid)
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write("collection", first_error(report.longreprtext), report.nodeid)

    def _write(self, where: str | None, said: str, test: str) -> None:
        if not self._file.exists():
            self._file.write_text(json.dumps({"broken": where, "said": said, "test": test}))


def _fault(failure: pytest.ExceptionInfo[BaseException]) -> str | None:
    """Why the failure proves nothing, in a word; None where the test has found an error."""
    files = [entry.path.name for entry in failure.traceback]
    if "conftest.py" in files:
        return "fixture"
    unpacks = isinstance(failure.value, ValueError) and "values to unpack" in str(failure.value)
    return None if _tells(failure.value) or (unpacks and files[-1].startswith("test_")) else "error"


def _tells(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_tells, error.exceptions))
    if isinstance(error, pytest.fail.Exception):
        return not str(error).startswith("Timeout")  # so pytest-timeout says it
    return isinstance(error, (AssertionError, *DATA_REFUSED)) or _refuses(error)


def _refuses(error: BaseException) -> bool:
    """Whether the product says that it will not, other than because it is no program."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    cause = error.__cause__
    no_program = isinstance(cause, NO_PROGRAM) and not isinstance(cause, DATA_REFUSED)
    no_program = no_program or TOLD_OF_NO_PROGRAM.search(str(error)) is not None
    return REFUSAL in kinds and not kinds & AWAY and not no_program


def first_error(output: str) -> str:
    """Pytest's words about the first error."""
    lines = [line.strip() for line in output.splitlines() if line.startswith("E  ")]
    named = [line for line in lines if re.match(r"E +\w*(Error|Exception|assert)\b", line)]
    return [*named, *lines, *output.strip().splitlines()[-1:], ""][0].removeprefix("E").strip()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # its fixtures clear up after it
    sys.exit(pytest.main(sys.argv[2:], plugins=[Judge(Path(sys.argv[1]))]))
