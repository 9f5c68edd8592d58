"""A person overturns a conflict: where its entry stands, and how it gets there."""

from __future__ import annotations

from uuid import uuid4

from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect
from concord.jobs.ledger import Entry, Overturn
from concord.jobs.link import Direction, LinkJob
from concord.jobs.replication import of_replication
from concord.messages.errors import OverturnRefused
from concord.orchestration.tasks import jobs
from concord.repository.conflicts import record_overturns
from concord.repository.ledger import find


def overturn(
    engine: Engine, configuration: Configuration, conflict: str, person: str, *, although_changed: bool
) -> tuple[Entry, Overturn]:
    """Bring back the loser of the conflict whose id begins so, at the site that decided it.

    No lease: it is an edit like any user's. Raises OverturnRefused, ParametersRefused, or what a site may raise.
    """
    entry = find(engine, conflict)
    if entry.refusal is not None:
        raise OverturnRefused(f"{entry.short_id}: {entry.refusal}; nothing was written")
    job = _job(configuration, entry)
    bring_back = dialect(job.target.dialect).upkeep.overturn
    done = bring_back(job, entry, person, although_changed=although_changed)
    record_overturns(engine, [done])
    return entry, done


def _job(configuration: Configuration, entry: Entry) -> LinkJob:
    """The link whose target decided. Raises ParametersRefused for what is no longer configured."""
    direction = Direction(entry.link.rpartition("/")[2])
    if of_replication(entry.synchronization):
        job = _of_replication(configuration, entry, direction)
    else:
        job = jobs.link_job(
            configuration, entry.synchronization, direction, epoch=0, chosen=[entry.table_name]
        )
    if job.target.name != entry.site:
        raise OverturnRefused(
            f"{entry.short_id}: {entry.link} no longer leads to {entry.site}, where it was decided"
        )
    return job


def _of_replication(configuration: Configuration, entry: Entry, direction: Direction) -> LinkJob:
    """A queued replication's tables are captured as those of links, and so an edit at either site is carried."""
    [name] = entry.synchronization.split("/")[1:]
    jobs.known_name(name, configuration.replications, "replication")
    replication = configuration.replication(name)
    jobs.refuse_unknown_tables([entry.table_name], replication.tables)
    if not replication.queued:
        raise OverturnRefused(
            f"{entry.short_id}: a person decided it; write the row at either site, as any user does"
        )
    source, target = jobs.site_accesses(configuration, replication.ends(direction))
    return LinkJob(
        synchronization=entry.synchronization,
        direction=direction,
        transmission=uuid4().hex,
        epoch=0,
        source=source,
        target=target,
        tables=replication.tables,
        chosen=(entry.table_name,),
    )
