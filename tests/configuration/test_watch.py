"""How a watch is written, and what it needs of its synchronization."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from concord.configuration.configuration import Configuration
from concord.configuration.watch import WatchSettings
from concord.messages.errors import Problem
from tests.configuration.examples import spoiled

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]

SCHEDULE = 'schedule: "*/5 * * * *"'


def watched(settings: str, schedule: str = SCHEDULE) -> str:
    return spoiled(SCHEDULE, f"{schedule}\n    watch: {settings}")


def test_a_watch_listens_and_folds_what_comes_within_a_fifth_of_a_second(parse: Parse) -> None:
    watch = parse(watched("{}")).synchronizations["london_capetown"].watch
    assert watch == WatchSettings(listen=True, poll=None, debounce=timedelta(milliseconds=200))
    full = parse(watched("{listen: false, poll: 10 s, debounce: 1 s}")).synchronizations["london_capetown"]
    assert full.watch == WatchSettings(
        listen=False, poll=timedelta(seconds=10), debounce=timedelta(seconds=1)
    )


@pytest.mark.parametrize(
    ("settings", "key", "said"),
    [
        ("{listen: false}", "", "neither listens nor polls; write poll: 10 s"),
        ("{poll: 900 ms}", ".poll", "asks the sites too often; write 1 s or more"),
        ("{debounce: 2 min}", ".debounce", "longer than a minute; leave watch out"),
        ("{listen: sometimes}", ".listen", "true or false expected"),
        ("{every: 10 s}", ".every", "unknown key"),
    ],
)
def test_a_mistake_is_named(problems: Problems, settings: str, key: str, said: str) -> None:
    (problem,) = problems(watched(settings))
    assert problem.key == f"synchronizations.london_capetown.watch{key}"
    assert said in str(problem)


def test_without_a_schedule_a_lost_announcement_would_wait_for_ever(problems: Problems) -> None:
    (problem,) = problems(watched("{}", schedule="# none"))
    assert problem.key == "synchronizations.london_capetown.watch"
    assert "needs a schedule beside it" in problem.message


def test_a_table_with_marks_tells_nobody_of_its_commits(problems: Problems) -> None:
    marks = "tracking: {changed_at: updated_at, deleted: is_deleted}"
    (problem,) = problems(watched("{}").replace("key: [carrier]", marks))
    assert "public.airlines: has marks of the application and no triggers" in problem.message


def test_only_tables_that_somebody_listens_for_are_announced(parse: Parse) -> None:
    carried = {"public.flights", "public.airlines"}
    assert parse(watched("{}")).announced_at("capetown") == carried
    assert parse(watched("{listen: false, poll: 10 s}")).announced_at("capetown") == set()
