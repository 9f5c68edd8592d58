"""Spark's steps of a link, a snapshot or a comparison.

Each step imports its modules when it is taken: few rows need no Spark at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from concord.comparison.differing import Differing
from concord.comparison.side import Side
from concord.databases.contract.questions import Answer
from concord.databases.contract.reading import Reading, Relay
from concord.databases.contract.rows import Shape, Staged
from concord.messages.pace import Meter
from concord.rules.hook_function import AboutToBeWritten, Hooked, Word
from concord.transmission.link import Changes, Link
from concord.transmission.staged_table import StagedTable
from concord.transmission.straight import Carry
from spark_jobs.application import Spark


@dataclass(frozen=True)
class BySpark:
    """The steps that `concord.transmission` and `concord.comparison` ask for; Spark begins with the first one."""

    spark: Spark

    def start(self) -> None:
        """Raises SparkUnavailable or ConnectionRefused."""
        self.spark()

    def carrying(self, relay: Callable[[], Relay], meter: Meter) -> tuple[Carry, Callable[[], None]]:
        """One job carries everything that goes straight."""
        from spark_jobs.steps.straight import stage_straight  # noqa: PLC0415 - as the module says
        from spark_jobs.steps.tasks import by_tasks  # noqa: PLC0415 - likewise

        spark = self.spark()
        return partial(stage_straight, spark, relay), by_tasks(spark, meter)

    def planned(self, link: Link, changes: Changes) -> tuple[Counter[str], Mapping[str, Sequence[str]]]:
        """Rows per verdict, and why where a verdict stops the table. Raises LinkFailed."""
        from spark_jobs.steps import table  # noqa: PLC0415 - likewise

        return table.planned(link, self.spark(), changes)

    def staged(self, link: Link, changes: Changes) -> tuple[Staged, StagedTable]:
        """Where the changes are staged, and what the tasks counted. Raises LinkFailed."""
        from spark_jobs.steps import table  # noqa: PLC0415 - likewise

        return table.staged(link, self.spark(), changes)

    def answers(self, shape: Shape, shown: Sequence[Mapping[str, object]]) -> Sequence[Answer]:
        """The decisions of somebody else's function, asked here: no job is worth so few."""
        from spark_jobs.steps import custom  # noqa: PLC0415 - likewise

        return custom.answers(shape, shown)

    def ask_hook(self, hooked: Hooked, rows: Sequence[AboutToBeWritten]) -> Sequence[Word]:
        """The words of a hook on rows that are about to be written."""
        from spark_jobs.steps import hook  # noqa: PLC0415 - likewise

        return hook.ask_hook(hooked, rows)

    def joined(
        self, source: Side, target: Side, wanted: Sequence[int], priorities: Mapping[str, int]
    ) -> Iterator[Differing]:
        """The keys of the wanted buckets that differ."""
        from spark_jobs.steps.joined import joined_by_spark  # noqa: PLC0415 - likewise

        return joined_by_spark(self.spark(), source, target, wanted, priorities)

    def mapped(self, reading: Reading, source: Shape, place: Staged, login: str) -> Staged:
        """Rows of a repair, staged in the target's shape. Raises MappingNotReversible."""
        from spark_jobs.steps.repair_mapped import stage_mapped  # noqa: PLC0415 - likewise

        return stage_mapped(self.spark(), reading, source, place, login)
