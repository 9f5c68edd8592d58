"""How two sites stand to each other before an initialization: strangers, in common history, or one of them stale."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from concord.databases.contract.memory import LinkState
from concord.databases.postgresql.facts.connection import rows
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.sites import site_facts
from concord.databases.postgresql.sites.ends import Source, Target
from concord.jobs.initialization import How, InitializationJob
from concord.messages import incarnation
from concord.messages.errors import IdentityChanged, NotInitialized, NotProvisioned, ParametersRefused
from concord.versions.position import Session, resume

End = Source | Target


@dataclass(frozen=True, slots=True)
class Standing:
    """Which site is to be brought back, and why; no site where the pair has its history or never had one."""

    stale: str | None = None
    restored: bool = False  #: it was restored, cloned or replaced, and needs a new incarnation
    whole: bool = False  #: the pair has no history left to go on from, for any table


def known(end: End, link: str) -> LinkState:
    """An end's record of a link; nothing where it has never heard of it."""
    try:
        return end.state(link)
    except NotInitialized:
        return LinkState({}, ())


def standing(job: InitializationJob, source: End, target: End, *, resumed: bool) -> Standing:
    """Raises IdentityChanged for a restored site that nobody accepted, ParametersRefused where a person must
    say which site is the good one. `resumed`: the pair was looked at when this initialization began."""
    restored = {
        end.access.name for end, peer, link in _both(job, source, target) if _restored(end, peer, link)
    }
    if restored and not job.accept_restored and not resumed:
        names = " and ".join(sorted(restored))
        raise IdentityChanged(
            f"{names}: the database is not the one that the other site knows, or older than what it has already sent:"
            " it was restored from a backup, cloned or replaced. If it is a clone, mend the Airflow connection; else"
            f" stop every clone of it, then run"
            f" `python -m concord initialize {job.link.synchronization} --accept-restored`"
            " (in Airflow: accept_restored). Nothing was written"
        )
    stale = restored or set(_below_floor(job, source, target))
    whole = bool(stale) or _lost(job, source, target)
    if not whole and job.how is not How.REINITIALIZE:
        return Standing()
    sites = {source.access.name, target.access.name}
    if job.named is None and len(stale) != 1:
        raise ParametersRefused(
            f"{' and '.join(sorted(sites))}: say which of them holds what is right (from: <site>); the other one is"
            " brought back: its unsent changes live; what else it alone holds is removed, and logged"
        )
    found = next(iter(stale)) if len(stale) == 1 else next(iter(sites - {job.named}))
    if found == job.named:
        raise ParametersRefused(
            f"from: {job.named} is the site that must be brought back; name the other one"
        )
    return Standing(found, found in restored, whole)


def check_provisioned(*ends: End) -> None:
    """Raises NotProvisioned where a site lacks what an initialization writes its progress into."""
    for end in ends:
        if not rows(end.connection, "SELECT 1 WHERE to_regclass('concord.initialization') IS NOT NULL"):
            raise NotProvisioned(
                f"{end.access.name} is not provisioned, or was by an earlier version; run `provision` first"
            )


def _both(job: InitializationJob, source: End, target: End) -> Iterator[tuple[End, End, str]]:
    """Each site, its peer, and the link that leaves it for there."""
    yield source, target, job.link.link
    yield target, source, job.link.related_link


def _restored(end: End, peer: End, link: str) -> bool:
    """Another database under the same name, or one that went back (F65, F66)."""
    facts = site_facts.read_facts(end.connection, end.access.name, time.time())
    if facts.provisioned_as is None:
        raise NotProvisioned(f"{end.access.name} is not provisioned; run `provision` first")
    if facts.provisioned_as != end.access.name:
        raise IdentityChanged(incarnation.of_another_site(end.access.name, facts.provisioned_as))
    newest = max((session.heartbeat for session in known(peer, link).history), default=0)
    older = link_state.site_row(end.connection).heartbeat < newest
    return older or facts.identity != facts.provisioned_identity


def _sessions(source: End, target: End, link: str) -> tuple[LinkState, LinkState, Session | None]:
    at_source, at_target = known(source, link), known(target, link)
    found = resume(at_source.history, at_target.history, "", "")
    return at_source, at_target, None if found is None else found.session


def _below_floor(job: InitializationJob, source: End, target: End) -> Iterator[str]:
    """The sites that were away while tombstones went."""
    for end, peer, link in _both(job, source, target):
        at_source, _, session = _sessions(end, peer, link)
        if session is not None and at_source.below_floor(session):
            yield peer.access.name


def _lost(job: InitializationJob, source: End, target: End) -> bool:
    """Both remember the link, and nothing in common."""
    for end, peer, link in _both(job, source, target):
        at_source, at_target, session = _sessions(end, peer, link)
        if at_source.history and at_target.history and session is None:
            return True
    return False
