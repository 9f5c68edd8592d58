"""The rules that tie a snapshot to the sites, the replicated tables and the other snapshots."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.jobs.snapshot import SnapshotKind
from concord.messages.errors import Problem
from tests.configuration.examples import VALID

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]

COPY = {
    "kind": "incremental",
    "source": "london",
    "target": "capetown",
    "from": "public.flights",
    "table": "r.copy",
}


def written(**snapshots: dict[str, str]) -> str:
    lines = [
        f"  {name}: {{{', '.join(f'{k}: {v}' for k, v in each.items())}}}" for name, each in snapshots.items()
    ]
    return VALID + "snapshots:\n" + "\n".join(lines) + "\n"


def test_an_incremental_snapshot_uses_the_capture_of_the_replication_set_or_one_of_its_own(
    parse: Parse,
) -> None:
    other = COPY | {"from": "public.other", "table": "r.other", "columns": "[a, b]", "where": '"a > 5"'}
    configuration = parse(
        written(copy=COPY, other=other, back=COPY | {"kind": "non_incremental", "table": "r.b"})
    )
    shared, own = configuration.snapshot("copy").tracked, configuration.snapshot("other").tracked
    assert shared is not None
    assert (shared.name, shared.captured_only) == ("public.flights", False)
    assert own is not None
    assert (own.name, own.captured_only, str(own.at_site("london"))) == (
        "public.other@london",
        True,
        "public.other",
    )
    back = configuration.snapshot("back")
    assert (back.kind, back.tracked, back.where) == (SnapshotKind.NON_INCREMENTAL, None, None)


def test_another_definition_has_another_fingerprint_and_another_schedule_has_not(parse: Parse) -> None:
    prints = {
        parse(written(copy=COPY | changed)).snapshot("copy").fingerprint
        for changed in ({}, {"schedule": '"@daily"'}, {"columns": "[a]"}, {"where": '"a > 5"'})
    }
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("changed", "key", "message"),
    [
        ({"kind": "sometimes"}, "kind", "unknown value; write 'incremental' or 'non_incremental'"),
        ({"source": "londn"}, "source", "unknown site 'londn'; did you mean 'london'?"),
        ({"target": "london"}, "target", "the same site; a materialized view does that"),
        ({"table": "ops.flights"}, "table", "is a replicated table at 'capetown'"),
        ({"columns": "[a, a]"}, "columns", "names one thing twice"),
        ({"where": '"now() > a"'}, "where", "functions are not allowed"),
        ({"table": "copy"}, "table", "the table's schema is missing"),
        ({"fro": "x.y"}, "fro", "unknown key; did you mean 'from'?"),
    ],
)
def test_a_mistake_in_a_snapshot_is_one_clear_line(
    problems: Problems, changed: dict[str, str], key: str, message: str
) -> None:
    (problem,) = problems(written(copy=COPY | changed))
    assert problem.key.startswith(f"snapshots.copy.{key}")
    assert message in str(problem)


def test_two_snapshots_share_no_table_and_go_round_in_no_loop(problems: Problems) -> None:
    (same,) = problems(written(one=COPY, two=COPY | {"from": "public.other"}))
    assert (same.key, "the table of the snapshot 'one' already" in same.message) == (
        "snapshots.two.table",
        True,
    )
    there = COPY | {"from": "public.a", "table": "public.b"}
    back = COPY | {"source": "capetown", "target": "london", "from": "public.b", "table": "public.a"}
    assert {each.key for each in problems(written(there=there, back=back))} == {
        "snapshots.there.from",
        "snapshots.back.from",
    }
