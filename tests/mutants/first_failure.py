"""Runs pytest and writes the cause of its first failure to a file: `python -P first_failure.py FILE ARGUMENTS…`.

Only two failures show that a test has found an error:

- An assertion fails. An expected error that does not occur is one, and so is `[only] = found` in a test.
- The product or its database rejects what the test does.

Any other failure shows only that the test could not be run. It failed in a fixture, during collection, or by taking too
long. Or a name is missing, or the database cannot parse a statement.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import psycopg
import pytest

#: The root of the product's errors, by name: the planted error may prevent its import.
REFUSAL = "ConcordError"
#: A database that does not answer rejects nothing.
AWAY = {"SiteUnavailable", "RepositoryUnavailable"}
DATA_REFUSED = (
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.CardinalityViolation,
)

#: These show that the planted error is no valid program.
NO_PROGRAM = (NameError, AttributeError, TypeError, ImportError, SyntaxError, psycopg.ProgrammingError)
#: The same in a message of the product, which may have no cause. 42501 is a missing privilege.
NO_PROGRAM_IN_MESSAGE = re.compile(
    r"SQLSTATE 42(?!501)|\b(Name|Attribute|Type|Import|ModuleNotFound|Syntax|UnboundLocal)Error\b"
)


class FirstFailure:
    """A pytest plugin. The failure of a test counts, and later failures of its fixtures do not."""

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
    """Why the failure proves nothing, in one word; None where the test has found an error."""
    files = [entry.path.name for entry in failure.traceback]
    if "conftest.py" in files:
        return "fixture"
    unpacks = isinstance(failure.value, ValueError) and "values to unpack" in str(failure.value)
    return None if _finds_error(failure.value) or (unpacks and files[-1].startswith("test_")) else "error"


def _finds_error(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_finds_error, error.exceptions))
    if isinstance(error, pytest.fail.Exception):
        return not str(error).startswith("Timeout")  # the message of pytest-timeout
    return isinstance(error, (AssertionError, *DATA_REFUSED)) or _rejects(error)


def _rejects(error: BaseException) -> bool:
    """Whether the product rejects the call, and is a valid program."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    cause = error.__cause__
    no_program = isinstance(cause, NO_PROGRAM) and not isinstance(cause, DATA_REFUSED)
    no_program = no_program or NO_PROGRAM_IN_MESSAGE.search(str(error)) is not None
    return REFUSAL in kinds and not kinds & AWAY and not no_program


def first_error(output: str) -> str:
    """The first error in pytest's output."""
    lines = [line.strip() for line in output.splitlines() if line.startswith("E  ")]
    named = [line for line in lines if re.match(r"E +\w*(Error|Exception|assert)\b", line)]
    return [*named, *lines, *output.strip().splitlines()[-1:], ""][0].removeprefix("E").strip()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the fixtures are torn down
    sys.exit(pytest.main(sys.argv[2:], plugins=[FirstFailure(Path(sys.argv[1]))]))
