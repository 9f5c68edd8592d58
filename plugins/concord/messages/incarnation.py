"""The words to a person about a site whose database is another one than its peers know, or an older one (F65,
F66)."""

from __future__ import annotations

_RESTORED = (
    "run `python -m concord initialize {name} --accept-restored`"
    " (in Airflow: initialize__{name}, accept_restored)"
)
#: A snapshot has no initialization: what captures its rows, and what guards its copy, is made anew.
_SNAPSHOTS_ALONE = (
    "run `provision --remove --site {site}`, empty the copies of snapshots that are kept there, run `provision`, and"
    " refresh the snapshots in full"
)


def brought_back(site: str) -> str:
    """The remedy for a restored site, whatever it takes part in."""
    return (
        "run `initialize NAME --accept-restored` for each of its synchronizations; if it has none but takes part in"
        f" snapshots, {_SNAPSHOTS_ALONE.format(site=site)}"
    )


def older(site: str, heartbeat: int, known: int, synchronization: str) -> str:
    """The heartbeat went back: a backup was restored, or a clone with the same identity ran in the site's place."""
    return (
        f"{site}: the database is older than what {site} has already sent (heartbeat {heartbeat}, known {known}): it"
        f" was restored from a backup, or a clone of it ran in its place. Stop the clone, if there is one; then"
        f" {_brought_back(site, synchronization)}. Nothing was written"
    )


def another(site: str, synchronization: str) -> str:
    """The identity is not the one that was provisioned."""
    return (
        f"{site}: the database is not the one that was provisioned as {site}: it was restored or failed over, or it is"
        " a clone or a wrong connection. If it is a clone or a wrong connection, mend the Airflow connection; if it is"
        f" {site} from now on, {_brought_back(site, synchronization)}. Nothing was written"
    )


def of_another_site(site: str, provisioned_as: str) -> str:
    """The connection of one site leads to another one."""
    return (
        f"{site}: the connection leads to the database that was provisioned as {provisioned_as}; mend the Airflow"
        " connection. Nothing was written"
    )


def _brought_back(site: str, synchronization: str) -> str:
    return brought_back(site) if "/" in synchronization else _RESTORED.format(name=synchronization)
