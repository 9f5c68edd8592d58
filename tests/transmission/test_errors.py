"""A failure inside Spark is told in our words, and says whether a later run can help (F61)."""

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException

from concord.messages.errors import ConcordError
from concord.transmission.errors import TaskFailed, worded

SAID = {
    "site_unavailable": (
        "adbc_driver_manager.OperationalError: IO: Failed to connect: FATAL:  the database system is starting up",
        "adbc_driver_manager.OperationalError: IO: Failed to execute query: server closed the connection",
        "adbc_driver_manager.DataError: INVALID_DATA: [libpq] Failed to execute query 'SET TRANSACTION SNAPSHOT '1-1''"
        ': ERROR:  invalid snapshot identifier: "1-1"',
    ),
    "write_contended": ("concord.messages.errors.WriteContended: public.flight: an application was faster",),
    "privilege_missing": (
        "concord.messages.errors.PrivilegeMissing: permission denied for table t",
        "adbc_driver_manager.ProgrammingError: UNAUTHORIZED: ERROR:  permission denied for table t",
    ),
    "link_failed": (
        "ValueError: of our own making",
        "ValueError: of our own making\nwhile staging public.ErrorLog\n\n\tat org.apache.spark.SparkErrorUtils.f()",
    ),
}


class FailedInJava(Py4JJavaError):
    """As classic Spark raises it; a real one asks Java for its trace."""

    def __init__(self, said: str) -> None:
        self.said = said

    def __str__(self) -> str:
        return self.said


@pytest.mark.parametrize(
    "brought", [PythonException, FailedInJava, TaskFailed], ids=["by Spark", "by Java", "by the driver"]
)
@pytest.mark.parametrize(("code", "said"), [(code, said) for code, every in SAID.items() for said in every])
def test_a_database_that_went_away_is_told_from_what_a_person_has_to_mend(
    code: str, said: str, brought: type[Exception]
) -> None:
    with pytest.raises(ConcordError) as raised, worded("public.flight"):
        raise brought(f"Traceback (most recent call last):\n{said}")
    assert raised.value.code == code
    table = "public.ErrorLog" if "ErrorLog" in said else "public.flight"
    assert raised.value.message.startswith(f"{table}: ")
    assert code != "link_failed" or ": ValueError: of our own making. " in raised.value.message
    assert "othing was written" in raised.value.message


def test_what_is_no_word_of_a_task_is_told_as_it_is() -> None:
    with pytest.raises(ValueError, match=r"^of our own making$"), worded("public.flight"):
        raise ValueError("of our own making")
