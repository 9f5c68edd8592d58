"""Workers that have imported another Concord than their driver refuse to work for it."""

from collections.abc import Iterator

import pytest

from concord.messages.errors import OtherCode
from concord.orchestration.tasks.job_files import PROJECT
from spark_jobs import code_state
from spark_jobs.code_state import CODE, in_this_code, sources


def passed(batches: Iterator[int]) -> Iterator[int]:
    yield from batches


def test_what_is_sent_to_tasks_begins_where_they_have_the_same_code() -> None:
    assert list(in_this_code(passed)(iter([1, 2]))) == [1, 2]


def test_what_is_sent_to_tasks_of_another_code_is_refused_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = in_this_code(passed)
    monkeypatch.setattr(code_state, "CODE", "another")
    with pytest.raises(OtherCode, match="restart the Connect server"):
        list(sent(iter([1])))


def test_the_code_is_that_of_every_module_that_tasks_may_import() -> None:
    paths = [path for path, _ in sources()]
    assert len(CODE) == 16
    assert {
        "concord/messages/errors.py",
        "concord/databases/postgresql/write/relay.py",
        "concord/transmission/straight.py",
        "spark_jobs/steps/straight.py",
    } <= {*paths}
    assert [path for path in paths if "orchestration" in path or "repository" in path] == []
    assert (PROJECT / "spark_jobs" / "steps" / "straight.py").read_bytes() == dict(sources())[
        "spark_jobs/steps/straight.py"
    ]
