"""The benchmark of conflicts: its rounds, its function, and the table it prints."""

import pyarrow as pa

from benchmarks.conflicts import Measured, grid, rounds, the_dearer_of_two
from benchmarks.link_run import LinkRun
from benchmarks.measurement import Measurement
from concord.jobs.link import Direction, TableReport, TransmissionReport


def test_every_policy_has_a_round_alone_and_one_beside_as_many_that_meet_nothing() -> None:
    found = [(each.resolvers[0].partition("(")[0], each.conflicts, each.unconflicted) for each in rounds(10)]
    conflicted = ["latest_timestamp", "additive", "custom"]
    assert [each for each in found if each[1]] == [
        *((policy, 10, 0) for policy in conflicted),
        *((policy, 10, 10) for policy in conflicted),
    ]


def test_the_function_takes_the_dearer_row_and_makes_every_second_one_anew() -> None:
    def side(price: str, miles: int) -> pa.Array:
        return pa.array([{"id": key, "price": price, "miles": miles} for key in (1, 2)])

    pairs = pa.RecordBatch.from_arrays([side("1.50", 7), side("2.50", 9)], ["source", "target"])
    answer = the_dearer_of_two(pairs).to_pylist()
    assert [each["decision"] for each in answer] == ["source", "row"]
    assert answer[1]["row"] == {"id": 2, "price": "2.50", "miles": 509}


def test_the_ratio_is_to_as_many_changes_that_meet_nothing() -> None:
    def measured(place: int, *seconds: tuple[float, float]) -> Measured:
        report = TransmissionReport(
            transmission="0" * 32,
            synchronization="s",
            direction=Direction.FORWARD,
            source="london",
            target="capetown",
            tables=(TableReport(table="t", merged=3),),
        )
        reports = [
            report.model_copy(update={"seconds": {"stage": stage, "write": write}})
            for stage, write in seconds
        ]
        runs = [LinkRun(each, Measurement(1.0, {})) for each in reports]
        return Measured(rounds(10)[place], runs)

    ten = measured(0, (1.0, 1.0), (1.0, 1.0))
    twenty = measured(4, (2.0, 2.0), (1.0, 1.0))
    *_, last = grid([ten, twenty, measured(6, (2.0, 4.0), (2.0, 3.0))]).rows
    assert last == [
        *("half additive, merge_columns", "20", "10", "3"),
        *("2.00", "3.50 (3.00 to 4.00)", "2.00 (1.50 to 2.50)", "1.00"),
    ]
