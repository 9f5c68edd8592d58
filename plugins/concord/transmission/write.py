"""Write: the target's one transaction over all tables, then the source's memory of it."""

from __future__ import annotations

from collections.abc import Iterable

from concord.jobs.link import TableReport
from concord.messages.errors import RowsOscillate, StructureChanged, WriteContended
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Meter, of_tables
from concord.transmission.link import Link
from concord.transmission.oscillation import leave_out_oscillating
from concord.transmission.outcome import LinkOutcome
from concord.versions.position import Session

logger = logger_named("concord.link")


def write(link: Link, outcome: LinkOutcome, *, asks: bool) -> dict[str, TableReport]:
    """Rows per outcome of the tables that were written. `asks`: a function is asked again about rows that it was not
    shown. Tables that oscillate, that others hold, or whose own objects fail, are left out, and the others go on.

    Raises DecideAgain, RowsOscillate, and what the transaction raises: then nothing was written.
    """
    # One transaction, of which nobody sees a part: neither do we.
    names = [place.shape.name for place in outcome.placed]
    rows = sum(place.rows for place in outcome.placed)
    state, progress = link.opened.target_state, link.steps.progress
    with link.steps.long_step("write", Meter("write", of_tables(names), of=rows)):
        passing: set[str] = set()
        while True:
            try:
                return link.target.write(
                    outcome.placed,
                    state,
                    session(link, outcome),
                    progress,
                    passing,
                    asks=asks,
                    ask_hook=link.spark.ask_hook,
                )
            except RowsOscillate as error:
                if passing:
                    raise
                passing = leave_out_oscillating(error, link, outcome)
            except (StructureChanged, WriteContended) as error:
                _leave_out_failed(error, outcome)


def _leave_out_failed(error: StructureChanged | WriteContended, outcome: LinkOutcome) -> None:
    """Raises the error where no other table is left to carry."""
    table = error.facts.get("table")
    if table is None or table in outcome.stopped:
        raise error
    outcome.stop({str(table): error.message})
    if not outcome.carried:
        raise error


def remember(link: Link, outcome: LinkOutcome) -> None:
    """The source's memory of the session; of a backfill neither end keeps any."""
    if link.job.moves_positions:
        with link.steps.step("remember"):
            link.source.remember(link.opened.source_state, session(link, outcome))


def session(link: Link, outcome: LinkOutcome) -> Session:
    """Both ends will remember this; positions move only for the tables that the run carries (rule 1).

    A table that has left the configuration keeps its place: it may come back.
    """
    opened = link.opened
    every = {
        *(table.name for table in link.job.tables),
        *opened.source_state.initialized,
        *opened.target_state.initialized,
        *link.position.differing,
    }
    return Session(
        id=link.job.transmission,
        source_origin=opened.source_site.origin,
        target_origin=opened.target_site.origin,
        heartbeat=outcome.heartbeat,
        position=link.position.advanced(outcome.position, outcome.carried, every),
    )


def log_inserted_for_update(link: Link, written: Iterable[TableReport]) -> None:
    """The target had lost these rows: a person may want to know why."""
    for table in written:
        if table.inserted_for_update:
            log_event(
                logger,
                "updates found no row at the target, and inserted it",
                site=link.job.target.name,
                table=table.table,
                rows=table.inserted_for_update,
                keys=list(table.keys_inserted),
            )
