"""PostgreSQL: which function of which room keeps which member of the contract. It does nothing itself."""

from __future__ import annotations

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ledger import Ledger
from concord.databases.contract.snapshot_ends import SnapshotDialect
from concord.databases.contract.status import Status
from concord.databases.contract.surveyed_site import Provisioning
from concord.databases.contract.upkeep import Upkeep
from concord.databases.contract.waiting import Waiting
from concord.databases.postgresql.compare.site import Compared
from concord.databases.postgresql.facts.open_connections import cancel
from concord.databases.postgresql.initialize.both_sites import Initialization
from concord.databases.postgresql.ledger import records, reinitialization, waiting_table
from concord.databases.postgresql.provision import logins, surveyed_site
from concord.databases.postgresql.rows.listen import arrivals
from concord.databases.postgresql.rows.pending import pending
from concord.databases.postgresql.sites.ends import Target
from concord.databases.postgresql.sites.link_source import LinkSource, between
from concord.databases.postgresql.snapshots import provision
from concord.databases.postgresql.snapshots.ends import SnapshotSource, SnapshotTarget
from concord.databases.postgresql.upkeep import forgetting, overturning, restamping, tombstones
from concord.databases.postgresql.upkeep.decide import Desk
from concord.databases.postgresql.write.relay import Relay

_STATUS = Status(
    links=records.links_at,
    waiting=records.waiting_at,
    asked=reinitialization.asked,
    initializations=records.initializations,
    dropped_indexes=records.dropped_indexes,
    pending=pending,
)

_LEDGER = Ledger(
    conflicts=records.conflicts,
    overturns=records.overturns,
    purge_conflicts=records.purge_conflicts,
    staging_tables=records.staging_tables,
    drop_staging=records.drop_staging,
)

_UPKEEP = Upkeep(
    clean=tombstones.clean,
    restamp=restamping.restamp,
    overturn=overturning.overturn,
    remembered=forgetting.remembered,
    forget=forgetting.forget,
)

POSTGRESQL = Dialect(
    name="PostgreSQL",
    source=LinkSource,
    target=Target,
    relay=Relay,
    between=between,
    cancel=cancel,
    compared=Compared,
    initialization=Initialization,
    provisioning=Provisioning(surveyed_site.survey, surveyed_site.number_notices),
    status=_STATUS,
    ledger=_LEDGER,
    waiting=Waiting(desk=Desk, others=waiting_table.others, drop=waiting_table.drop),
    upkeep=_UPKEEP,
    snapshots=SnapshotDialect(SnapshotSource, SnapshotTarget, provision.drop),
    arrivals=arrivals,
    logins=logins.script,
)
