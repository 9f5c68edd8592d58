"""Tables that a conflict asks to bring back to the publisher's copy (S3-21), remembered where it was decided.

The request stands in the record of the table's common history at the target of the link. It is written in the
transaction of the defeat. The next initialization of the table begins another record. So a request is neither lost
nor met twice, whoever dies in between.
"""

from __future__ import annotations

from collections.abc import Iterable

import psycopg
from psycopg.rows import class_row

from concord.databases.contract.quoting import literal
from concord.databases.contract.status import Asked
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, one, run
from concord.databases.postgresql.write.judged import Judged
from concord.jobs.initialization import How
from concord.jobs.link import LinkJob, TableReport
from concord.jobs.site import SiteAccess
from concord.rules.kinds import REINITIALIZING

#: The transmission that asked, in the record of a table's common history.
_ASKED = "reinitialize"


def counted(connection: Connection, judged: Judged, report: TableReport) -> TableReport:
    """The report with the conflicts that ask: those that such a resolver decided, alone or after one that merges."""
    if not (judged.exceptional and judged.staged.shape.policy.reinitializes):
        return report
    names = ", ".join(map(literal, REINITIALIZING))
    (found,) = one(
        connection,
        f"SELECT count(*) FROM {judged.verdicts} WHERE verdict IN ('source_wins', 'target_wins', 'merged')"
        f" AND string_to_array(resolver, ', ') && ARRAY[{names}]",
    )
    return report.model_copy(update={"reinitializing": found})


def ask(connection: Connection, job: LinkJob, reports: Iterable[TableReport]) -> None:
    """Remember which tables are to be brought back, until they are."""
    for name in (each.table for each in reports if each.reinitializing):
        place = f"ARRAY[{literal(name)}, {literal(_ASKED)}]"
        run(
            connection,
            f"UPDATE concord.link_state SET initialized = jsonb_set(initialized, {place},"
            f" to_jsonb({literal(job.transmission)}::text)) WHERE link = {literal(job.link)}",
        )


def asked(site: SiteAccess) -> list[Asked]:
    """The requests at the site. A table that was begun with has no record of common history left: its progress
    stands for it."""
    query = f"""
SELECT split_part(l.link, '/', 1) AS synchronization, t.key AS table, NULL AS begun_from
  FROM concord.link_state l, jsonb_each(l.initialized) t WHERE l.role = 'target' AND t.value ? {literal(_ASKED)}
UNION SELECT synchronization, table_name, named FROM concord.initialization
 WHERE how = {literal(How.REINITIALIZE.value)} ORDER BY 1, 2"""
    with connect(site.reader, "concord status") as connection:
        try:
            return connection.cursor(row_factory=class_row(Asked)).execute(query.encode()).fetchall()
        except psycopg.errors.UndefinedTable:
            return []  # provisioned by an earlier version
        except psycopg.Error as error:
            raise in_our_words(error, site.name) from error
