"""How a site's log comes to be read, and stops to be, while no edit is lost (S1-32 b).

A slot is made outside of transactions, and after the publication that its reader asks for. So provisioning first
publishes, and makes the slot; then takes the triggers in its transaction. The other way round: the triggers are made
in a transaction that holds the tables, and the log is read to its end in that.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

from concord.databases.postgresql.capture import by_log
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts import privileges
from concord.databases.postgresql.facts.connection import Connection, connect, in_transaction, rows, run
from concord.databases.postgresql.facts.own_schema import PUBLICATION
from concord.databases.postgresql.log import capture_slot, publication
from concord.databases.postgresql.rows import logged_edits
from concord.databases.postgresql.sites import grants, log_problems
from concord.databases.postgresql.sites.state import SiteState
from concord.jobs.site import Credentials
from concord.messages.errors import ProvisioningRefused


@dataclass
class SiteLog:
    """The log of one site, by the logins of its installer and of the log's reader."""

    state: SiteState
    installer: Credentials
    reads_log: Credentials
    _anew: bool = field(default=False, init=False)
    _interrupted: list[Shadow] = field(default_factory=list, init=False)  #: tables whose log has a gap
    _since: int | None = field(default=None, init=False)  #: the first transaction that may not be registered

    @property
    def _logged(self) -> list[Shadow]:
        return [each for each in self.state.shadows() if each.by_log]

    @property
    def _was_read(self) -> bool:
        return any(each.by_log for each in self.state.registered.values())

    @property
    def _read(self) -> list[Shadow]:
        """The tables whose log is read until now."""
        known = self.state.registered
        return [each for each in self.state.shadows() if each.name in known and known[each.name].by_log]

    @property
    def _going(self) -> list[Shadow]:
        """Those of which triggers tell again. Until they do, the log must."""
        return [each for each in self._read if not each.by_log]

    def begin(self, connection: Connection) -> None:
        """Publish the tables' keys, and make the slot where it is not the one that is read. Its reader may log in.

        Where every table has a gap, the publication itself may have been gone. Then no reader gets past the gap.
        """
        if not self._logged:
            return
        whole = publication.is_whole(connection, PUBLICATION)
        logs_in = privileges.missing(
            connection, [grants.connect(self.reads_log.user, self.state.facts.database)]
        )
        with connection.transaction():
            run(
                connection,
                *(each.sql for each in logs_in),
                *by_log.published([*self._logged, *self._going], whole=whole),
            )
        gaps = {name for (name,) in rows(connection, log_problems.INTERRUPTED)} if self._was_read else set()
        self._interrupted = [each for each in self._read if each.name in gaps]
        gone = self._read != [] and self._interrupted == self._read
        if gone or capture_slot.standing(connection, capture_slot.level(connection)) is not None:
            capture_slot.create(self.reads_log)
            self._anew, self._since = True, self._unregistered(connection)

    @property
    def locks(self) -> list[str]:
        """Whoever wrote a table in its gap has ended: from here on the log tells of all who write it."""
        return [
            f"LOCK TABLE {each.table.sql} IN SHARE ROW EXCLUSIVE MODE"
            for each in self._interrupted
            if each.by_log
        ]

    def _unregistered(self, connection: Connection) -> int | None:
        """Ids of transactions go on with a server's files, and begin anew with another server."""
        facts = self.state.facts
        known = facts.provisioned_identity or ""
        if not self._was_read or known.partition("/")[0] != facts.identity.partition("/")[0]:
            return None
        found = rows(connection, "SELECT pg_snapshot_xmin(registered)::text::bigint FROM concord.log_capture")
        return found[0][0] if found else None

    def read_to_the_end(self) -> None:
        """Whatever the log tells of tables that are held becomes changes: triggers tell of what follows."""
        if self._going:
            with closing(connect(self.installer, "concord provision")) as another:
                logged_edits.register(self.reads_log, another, in_transaction)

    def statements(self) -> list[str]:
        """After all others, in their transaction."""
        if not (self._logged or self._was_read):
            return []
        ended = [*by_log.ENDED] if not self._logged else []
        before = [each for each in self._read if each.by_log]
        anew = by_log.begun_anew(before, self._since) if self._anew else []
        return [by_log.published_alone(self._logged), *anew, *ended]

    def end(self) -> None:
        """Nobody reads the slot any more where no table is left: it would keep the log for ever."""
        if self._was_read and not self._logged:
            capture_slot.drop(self.reads_log)

    def drop(self) -> None:
        """Of a site that Concord leaves."""
        capture_slot.drop(self.reads_log)


def site_log(state: SiteState, installer: Credentials, reads_log: Credentials | None) -> SiteLog | None:
    """Of a site whose log is read, or was until now. Raises ProvisioningRefused where nobody could read it."""
    logged = any(each.by_log for each in state.registered.values()) or any(
        state.site in wanted.by_log for wanted in state.wanted
    )
    if not logged:
        return None
    if reads_log is None:
        raise ProvisioningRefused(
            f"{state.site}: its log is read until now; leave its log_reader in the configuration until `provision` has"
            " run. Nothing was written"
        )
    return SiteLog(state, installer, reads_log)
