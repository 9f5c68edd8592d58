"""Every error, in words a person can act on.

One tree. Each class states a stable `code`, which crosses the Spark process boundary, and whether it is
`transient`. Airflow retries a transient error and never a permanent one. Facts are attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from concord.messages.inert import inert_lines


class ConcordError(Exception):
    """Concord could not go on."""

    code: ClassVar[str] = "concord_error"
    transient: ClassVar[bool] = False

    def __init__(self, message: str = "", **facts: object) -> None:
        """The message is kept as a terminal or a log may show it, one line or several."""
        self.message = inert_lines(message or (type(self).__doc__ or "").splitlines()[0])
        self.facts = facts
        super().__init__(self.message)

    def __getattr__(self, name: str) -> object:
        try:
            return self.__dict__["facts"][name]
        except KeyError:
            raise AttributeError(name) from None


class LeaseHeld(ConcordError):
    """Another run of this synchronization holds the lease."""

    code = "lease_held"
    transient = True


class LeaseLost(ConcordError):
    """This run's epoch is no longer the newest: another run took over, and this one writes nothing more."""

    code = "lease_lost"


class RepositoryUnavailable(ConcordError):
    """The repository database does not answer."""

    code = "repository_unavailable"
    transient = True


class SiteUnavailable(ConcordError):
    """A site's database does not answer."""

    code = "site_unavailable"
    transient = True


class SparkUnavailable(ConcordError):
    """Spark does not answer."""

    code = "spark_unavailable"
    transient = True


class OtherCode(ConcordError):
    """Spark's workers run another version of Concord."""

    code = "other_code"


class ConnectionRefused(ConcordError):
    """A connection's settings are not safe or not complete."""

    code = "connection_refused"


class CapabilityMissing(ConcordError):
    """A database lacks what was asked of it."""

    code = "capability_missing"


class ProvisioningRefused(ConcordError):
    """A site cannot be provisioned as it is; nothing was written."""

    code = "provisioning_refused"


class NotProvisioned(ConcordError):
    """A site lacks what provisioning puts there."""

    code = "not_provisioned"


class PrivilegeMissing(ConcordError):
    """A login lacks a privilege that its role needs."""

    code = "privilege_missing"


class NotInitialized(ConcordError):
    """The two sites of a synchronization have no proven common history yet."""

    code = "not_initialized"


class SitesDiffer(ConcordError):
    """Two sites that were declared equal are not."""

    code = "sites_differ"


class IdentityChanged(ConcordError):
    """A database is not the one that was provisioned: it was restored, cloned or replaced."""

    code = "identity_changed"


class HistoryLost(ConcordError):
    """The two ends of a link know no session in common."""

    code = "history_lost"


class BelowFloor(ConcordError):
    """A site was away for so long that deletes it has not seen are no longer remembered."""

    code = "below_floor"


class ClockSkew(ConcordError):
    """A site's clock is too far from the others."""

    code = "clock_skew"


class StructureChanged(ConcordError):
    """A replicated table is not as it was provisioned, or differs between the sites."""

    code = "structure_changed"


class MappingNotReversible(ConcordError):
    """Rows do not come back the same from the form of the other site."""

    code = "mapping_not_reversible"


class TablesStopped(ConcordError):
    """Some tables were left out of a run; the others were carried."""

    code = "tables_stopped"


class ConstraintViolated(ConcordError):
    """The link would write a row that breaks a constraint of the target."""

    code = "constraint_violated"


class BrakeHeld(ConcordError):
    """More would be deleted, changed or replayed than the brakes allow without a person's approval."""

    code = "brake_held"


class EntryRefused(ConcordError):
    """A subscriber cannot replay one of its publisher's transactions; all before it are replayed."""

    code = "entry_refused"


class EntryConflict(ConcordError):
    """Users of both sites changed the same row, and a replication both ways stops until a person has decided."""

    code = "entry_conflict"


class SubscriberInvalid(ConcordError):
    """A subscriber was further behind its publisher than it may be: the log for it is no longer kept."""

    code = "subscriber_invalid"


class RowsOscillate(ConcordError):
    """Rows are rewritten run after run, each time in answer to the last write."""

    code = "rows_oscillate"


class WriteContended(ConcordError):
    """Applications and the link kept getting in each other's way."""

    code = "write_contended"
    transient = True


class DecideAgain(ConcordError):
    """Rows met versions that a resolver outside of the target's transaction was not shown: it is asked again."""

    code = "decide_again"
    transient = True


class ResolverFailed(ConcordError):
    """A custom resolver cannot be called, or gave no decision."""

    code = "resolver_failed"


class HookFailed(ConcordError):
    """A hook cannot be called, has failed, or said what nobody can do."""

    code = "hook_failed"


class CountMismatch(ConcordError):
    """The rows of a transmission do not add up."""

    code = "count_mismatch"


class ParametersRefused(ConcordError):
    """A run was triggered with parameters that it does not take."""

    code = "parameters_refused"


class DecisionRefused(ConcordError):
    """A waiting row cannot be decided like that; nothing was written."""

    code = "decision_refused"


class RestampRefused(ConcordError):
    """Rows cannot be stamped anew like that; nothing was written."""

    code = "restamp_refused"


class OverturnRefused(ConcordError):
    """An entry of the conflict ledger cannot be overturned; nothing was written."""

    code = "overturn_refused"


class AirflowUnavailable(ConcordError):
    """Airflow cannot run what was asked for."""

    code = "airflow_unavailable"


class LinkFailed(ConcordError):
    """A link's job ended without a report."""

    code = "link_failed"
    transient = True


class Problem(NamedTuple):
    """One mistake in the configuration: where it stands, what is wrong, and what to do."""

    file: str
    line: int
    key: str  #: dotted path of the key; empty where the file as a whole is meant
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """`concord.yaml:12: synchronizations.x.souce: unknown key; did you mean 'source'?`"""
        where = f"{self.file}:{self.line}: " + (f"{self.key}: " if self.key else "")
        return where + self.message + (f"; {self.hint}" if self.hint else "")


class ConfigurationInvalid(ConcordError):
    """The configuration cannot be used; every mistake in it is named."""

    code = "configuration_invalid"

    def __init__(self, message: str = "", problems: tuple[Problem, ...] = ()) -> None:
        self.problems = problems
        super().__init__(message or "\n".join(map(str, problems)))


def _subclasses(kind: type[ConcordError]) -> list[type[ConcordError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _subclasses(child))]


def from_code(code: str, message: str, facts: Mapping[str, object] = MappingProxyType({})) -> ConcordError:
    """The error that crossed a process boundary as (`code`, `message`, facts), as the class that defines its code."""
    kinds = {kind.code: kind for kind in _subclasses(ConcordError) if "code" in vars(kind)}
    error = kinds.get(code, ConcordError)(message)
    error.facts = dict(facts)
    return error
