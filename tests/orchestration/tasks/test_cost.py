"""Which costs less, runs or a copy, by what is recorded of both (S0-05)."""

from concord.orchestration.tasks.cost import Cheaper, Cost, compared
from concord.repository.costs import Spent
from concord.terminal.cost import said

ENDS = ("london", "capetown")
SMALL, LARGE = Spent(10, 1_000, 0.2), Spent(30, 3_000, 9.8)


def cost(*runs: Spent, copy: Spent | None = None, rows: int = 1_000) -> Cost:
    return compared(ENDS, runs, copy, (rows, rows * 100))


def test_the_mean_of_the_runs_is_compared_with_a_copy_of_the_rows_that_there_are_now() -> None:
    copy = Spent(500, 0, 3.0)
    assert cost(SMALL, copy=copy) == Cost(*ENDS, 1, 10, 1_000, 0.2, 1_000, 100_000, 6.0)
    both = cost(SMALL, LARGE, copy=copy)
    assert (both.runs, both.changes, both.bytes, both.seconds) == (2, 20, 2_000, 5.0)
    assert (both.cheaper, cost(LARGE, copy=copy).cheaper) == (Cheaper.CHANGES, Cheaper.COPY)
    assert cost(LARGE, copy=copy, rows=5_000).cheaper is Cheaper.CHANGES


def test_a_copy_of_an_empty_table_and_of_one_that_shrank_takes_as_long_as_it_took() -> None:
    assert cost(SMALL, copy=Spent(0, 0, 3.0), rows=0).copy_seconds == 3.0
    assert cost(SMALL, copy=Spent(500, 0, 3.0), rows=5).copy_seconds == 3.0


def test_where_no_copy_was_measured_rows_decide_as_far_as_they_can() -> None:
    found = [cost(SMALL, rows=rows).cheaper for rows in (10, 11, 99, 100)]
    assert found == [Cheaper.COPY, Cheaper.UNKNOWN, Cheaper.UNKNOWN, Cheaper.CHANGES]


def test_each_case_is_told_in_a_sentence() -> None:
    assert said(cost(SMALL, copy=Spent(500, 0, 3.0))) == (
        "london to capetown: a run carries 10 changes in 0.2 s, and a copy of about 1,000 rows takes about 6 s."
        " Changes are cheaper."
    )
    assert said(cost(LARGE, copy=Spent(500, 0, 3.0))).endswith("A copy is cheaper: a snapshot may do.")
    assert said(cost(SMALL, rows=11)).endswith("That is too near to say which is cheaper.")
    assert "nothing can be compared with a copy of about 1,000 rows" in said(cost())
