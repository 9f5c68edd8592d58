"""The `procedures` of a replication in the configuration (S4-132)."""

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from concord.configuration.configuration import Configuration
from concord.jobs.replication import ReplicationDefinition
from concord.messages.errors import ConfigurationInvalid, Problem
from concord.values.identifier import parse_table_name
from tests.given.configured_replications import BOOKINGS, written

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]


def test_procedures_are_named_as_tables_are(parse: Parse) -> None:
    text = written(to_capetown=BOOKINGS | {"procedures": "[public.close_month, 'b.\"close it\"']"})
    made = parse(text).replication("to_capetown")
    assert made.procedures == (
        parse_table_name("public.close_month"),
        parse_table_name('b."close it"'),
    )


@pytest.mark.parametrize(
    ("changed", "key", "message"),
    [
        (
            {"updates": "both"},
            "procedures",
            "calls go one way, and users of both sites write with updates: both",
        ),
        (
            {"updates": "queued"},
            "procedures",
            "calls go one way, and users of both sites write with updates: queued",
        ),
        (
            {"capture": "triggers"},
            "procedures",
            "calls come from the log; write capture: log, or let the rows travel",
        ),
        ({"procedures": "[b.one, b.two, b.one]"}, "procedures[2]", "b.one stands here twice; keep the first"),
        ({"procedures": "[close_month]"}, "procedures[0]", ""),
    ],
)
def test_calls_that_cannot_travel_are_refused_with_their_path(
    problems: Problems, changed: dict[str, str], key: str, message: str
) -> None:
    """S4-132: calls go from the publisher to the subscriber alone."""
    found = problems(written(to_capetown=BOOKINGS | {"procedures": "[b.one]"} | changed))
    mine = [each for each in found if each.key == f"replications.to_capetown.{key}"]
    assert mine
    assert message in str(mine[0])


@pytest.mark.parametrize("setting", [{"updates": "both"}, {"updates": "queued"}, {"capture": "triggers"}])
def test_no_job_is_made_that_would_lose_a_call(setting: dict[str, str]) -> None:
    """S4-132."""
    fields = {"name": "x", "replication_set": "y", "publisher": "a", "subscriber": "b", "tables": ()}
    procedures = (parse_table_name("public.close_month"),)
    with pytest.raises(ValidationError, match="calls go one way, and come from the log"):
        ReplicationDefinition.model_validate(fields | {"procedures": procedures} | setting)


OF_CALLS = BOOKINGS | {"replication_set": "calls", "procedures": "[public.hit]"}
NO_CALLS = BOOKINGS | {"replication_set": "calls"}
CALLS_ALONE = "  calls: {tables: []}\n\nsynchronizations:"


def test_a_set_without_tables_is_for_calls_alone(parse: Parse) -> None:
    """S4-132: nothing but calls may be published."""
    text = written(to_capetown=OF_CALLS).replace("\nsynchronizations:", f"\n{CALLS_ALONE}")
    made = parse(text).replication("to_capetown")
    assert (made.tables, made.procedures) == ((), (parse_table_name("public.hit"),))


@pytest.mark.parametrize("replication", [{}, {"one": NO_CALLS}, {"one": OF_CALLS, "other": NO_CALLS}])
def test_a_set_without_tables_is_refused_where_no_calls_travel_or_rows_do(
    parse: Parse, replication: dict[str, dict[str, str]]
) -> None:
    text = written(**({"of_rows": BOOKINGS} | replication))
    with pytest.raises(ConfigurationInvalid) as refused:
        parse(text.replace("\nsynchronizations:", f"\n{CALLS_ALONE}"))
    [found] = refused.value.problems
    assert found.key == "replication_sets.calls.tables"
    assert "empty; list at least one. Only replications of `procedures` can do without" in str(found)
