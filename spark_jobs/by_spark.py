"""Spark's steps of a link or a snapshot. Each imports what it needs when it is taken: few rows need no Spark at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from concord.databases.contract.dialect import Staged
from concord.databases.contract.reading import Relay
from concord.messages.pace import Meter
from concord.transmission.link import Changes, Link
from concord.transmission.staged_table import StagedTable
from concord.transmission.straight import Carry
from spark_jobs.application import Spark


@dataclass(frozen=True)
class BySpark:
    """`concord.transmission.link.SparkSteps`, by a session that begins when it is first asked for."""

    session: Spark

    def start(self) -> None:
        """Raises SparkUnavailable or ConnectionRefused."""
        self.session()

    def carrying(self, relay: Callable[[], Relay], meter: Meter) -> tuple[Carry, Callable[[], None]]:
        """What goes straight, as one job."""
        from spark_jobs.steps.straight import stage_straight  # noqa: PLC0415 - as the module says
        from spark_jobs.steps.tasks import by_tasks  # noqa: PLC0415 - likewise

        spark = self.session()
        return partial(stage_straight, spark, relay), by_tasks(spark, meter)

    def planned(self, link: Link, changes: Changes) -> tuple[Counter[str], Mapping[str, Sequence[str]]]:
        """Rows per verdict, and why where a verdict stops the table. Raises LinkFailed."""
        from spark_jobs.steps import table  # noqa: PLC0415 - likewise

        return table.planned(link, self.session(), changes)

    def staged(self, link: Link, changes: Changes) -> tuple[Staged, StagedTable]:
        """Where the changes are staged, and what the tasks counted. Raises LinkFailed."""
        from spark_jobs.steps import table  # noqa: PLC0415 - likewise

        return table.staged(link, self.session(), changes)
