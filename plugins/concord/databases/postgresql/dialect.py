"""PostgreSQL: which function of which room keeps which member of the contract. It does nothing itself."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from concord.databases.contract.dialect import Dialect

if TYPE_CHECKING:
    from collections.abc import Callable

    from concord.databases.contract.arrivals import Arrivals
    from concord.databases.contract.compared_site import ComparedSite
    from concord.databases.contract.ends import SourceEnd, TargetEnd
    from concord.databases.contract.initialization import Initialization as InitializationOf
    from concord.databases.contract.ledger import Ledger
    from concord.databases.contract.logins import Wanted
    from concord.databases.contract.reading import Relay as AnyRelay
    from concord.databases.contract.replication_ends import ReplicationDialect
    from concord.databases.contract.snapshot_ends import SnapshotDialect
    from concord.databases.contract.status import Status
    from concord.databases.contract.surveyed_site import Provisioning
    from concord.databases.contract.upkeep import Upkeep
    from concord.databases.contract.waiting import Waiting
    from concord.jobs.initialization import InitializationJob
    from concord.jobs.link import LinkJob


class _PostgreSQL(Dialect):
    name = "PostgreSQL"

    @cached_property
    def source(self) -> Callable[[LinkJob], SourceEnd]:
        from concord.databases.postgresql.sites.link_source import LinkSource

        return LinkSource

    @cached_property
    def target(self) -> Callable[[LinkJob], TargetEnd]:
        from concord.databases.postgresql.sites.ends import Target

        return Target

    @cached_property
    def relay(self) -> Callable[[], AnyRelay]:
        from concord.databases.postgresql.write.relay import Relay

        return Relay

    @cached_property
    def between(self) -> Callable[[Any, Any], AnyRelay]:
        from concord.databases.postgresql.sites.link_source import between

        return between

    @cached_property
    def cancel(self) -> Callable[[], None]:
        from concord.databases.postgresql.facts.open_connections import cancel

        return cancel

    @cached_property
    def compared(self) -> Callable[[LinkJob], ComparedSite]:
        from concord.databases.postgresql.compare.site import Compared

        return Compared

    @cached_property
    def initialization(self) -> Callable[[InitializationJob], InitializationOf]:
        from concord.databases.postgresql.initialize.both_sites import Initialization

        return Initialization

    @cached_property
    def provisioning(self) -> Provisioning:
        from concord.databases.contract.surveyed_site import Provisioning
        from concord.databases.postgresql.provision.surveyed_site import number_notices, survey

        return Provisioning(survey, number_notices)

    @cached_property
    def status(self) -> Status:
        from concord.databases.contract.status import Status
        from concord.databases.postgresql.facts.sizes import sizes
        from concord.databases.postgresql.ledger import records, reinitialization
        from concord.databases.postgresql.log.kept_log import kept_log
        from concord.databases.postgresql.rows.pending import pending

        return Status(
            links=records.links_at,
            waiting=records.waiting_at,
            asked=reinitialization.asked,
            initializations=records.initializations,
            dropped_indexes=records.dropped_indexes,
            log=kept_log,
            pending=pending,
            sizes=sizes,
        )

    @cached_property
    def ledger(self) -> Ledger:
        from concord.databases.contract.ledger import Ledger
        from concord.databases.postgresql.ledger import records

        return Ledger(
            conflicts=records.conflicts,
            overturns=records.overturns,
            purge_conflicts=records.purge_conflicts,
            staging_tables=records.staging_tables,
            drop_staging=records.drop_staging,
        )

    @cached_property
    def waiting(self) -> Waiting:
        from concord.databases.contract.waiting import Waiting
        from concord.databases.postgresql.ledger import waiting_table
        from concord.databases.postgresql.upkeep.decide import Desk

        return Waiting(desk=Desk, others=waiting_table.others, drop=waiting_table.drop)

    @cached_property
    def upkeep(self) -> Upkeep:
        from concord.databases.contract.upkeep import Upkeep
        from concord.databases.postgresql.upkeep import cleanup, forgetting, overturning, restamping

        return Upkeep(
            clean=cleanup.clean,
            restamp=restamping.restamp,
            overturn=overturning.overturn,
            remembered=forgetting.remembered,
            forget=forgetting.forget,
        )

    @cached_property
    def snapshots(self) -> SnapshotDialect:
        from concord.databases.contract.snapshot_ends import SnapshotDialect
        from concord.databases.postgresql.snapshots.ends import SnapshotSource, SnapshotTarget
        from concord.databases.postgresql.snapshots.provision import drop

        return SnapshotDialect(SnapshotSource, SnapshotTarget, drop)

    @cached_property
    def replications(self) -> ReplicationDialect:
        from concord.databases.contract.replication_ends import ReplicationDialect
        from concord.databases.postgresql.log.watch import Watch
        from concord.databases.postgresql.replication import kept_versions, standing
        from concord.databases.postgresql.replication.captured import publisher
        from concord.databases.postgresql.replication.subscriber import Subscriber

        looks = (standing.level, standing.kept_log, Watch)
        return ReplicationDialect(publisher, Subscriber, *looks, kept_versions.forget)

    @cached_property
    def arrivals(self) -> Arrivals:
        from concord.databases.postgresql.rows.listen import arrivals

        return arrivals

    @cached_property
    def logins(self) -> Callable[[Wanted], str]:
        from concord.databases.postgresql.provision.logins import script

        return script


POSTGRESQL = _PostgreSQL()
