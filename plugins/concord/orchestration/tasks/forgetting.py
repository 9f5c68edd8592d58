"""A synchronization, or a site, that has left the configuration for good: the remaining sites forget its links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect
from concord.jobs.site import Credentials
from concord.jobs.snapshot import snapshot_name
from concord.messages.errors import ConcordError, ParametersRefused
from concord.orchestration.surroundings.connections import credentials


def forget(configuration: Configuration, name: str) -> tuple[Mapping[str, Sequence[str]], Mapping[str, str]]:
    """Make every configured site that answers forget the links of `name`, a synchronization or a site.

    Returns site → links forgotten there, and site → why it could not be asked; ask again when it can. Raises
    ParametersRefused while `name` is configured, and when no site remembers it.
    """
    _refuse_what_is_configured(configuration, name)
    found, unreachable = _remembered(configuration, name)
    if not found and not unreachable:
        raise ParametersRefused(
            f"no site remembers a synchronization or a site {name!r}; there is nothing to forget"
        )
    forgotten = {}
    for site, links in found.items():
        try:
            installer = _installer(configuration, site)
            dialect(installer.dialect).upkeep.forget(installer, site, links)
            forgotten[site] = links
        except ConcordError as error:
            unreachable[site] = error.message
    return forgotten, unreachable


def _refuse_what_is_configured(configuration: Configuration, name: str) -> None:
    """A link that still runs would find nothing to resume from; a site that still has links would be asked again."""
    if name in configuration.synchronizations:
        raise ParametersRefused(
            f"{name} is still a synchronization of the configuration; take it out first, then forget it"
        )
    used = sorted(each for each, pair in configuration.synchronizations.items() if name in pair.sites)
    if used:
        raise ParametersRefused(
            f"{name} is still a site of {', '.join(used)}; take these out of the configuration first, then forget it"
        )


def _remembered(configuration: Configuration, name: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Links of `name` that sites remember and that are not configured; and which sites could not say."""
    found, unreachable = {}, {}
    for site in configuration.sites:
        try:
            installer = _installer(configuration, site)
            known = dialect(installer.dialect).upkeep.remembered(installer, site)
        except ConcordError as error:
            unreachable[site] = error.message
            continue
        links = [link for link, peer in known if _is_meant(configuration, name, link, peer, site)]
        if links:
            found[site] = links
    return found, unreachable


def _is_meant(configuration: Configuration, name: str, link: str, peer: str, site: str) -> bool:
    owner = link.rpartition("/")[0]  # of a snapshot's link, which has a `/` in its name, the snapshot
    configured = {*configuration.synchronizations, *map(snapshot_name, configuration.snapshots)}
    return owner not in configured and name in (owner, peer, site)


def _installer(configuration: Configuration, site: str) -> Credentials:
    settings = configuration.sites[site]
    return credentials(settings.installer_connection, insecure=settings.insecure)
