"""Pairs that are strangers, and how they are brought together."""

from typing import Any

from concord.jobs.initialization import How, InitializationJob, InitializationReport
from spark_jobs.initialize import initialize
from tests.given.site import Site
from tests.given.two_sites import Pair


def forget(sites: Pair) -> None:
    """As if the pair had only been provisioned."""
    for site in sites.sites:
        site.run("DELETE FROM concord.link_state")


def initialization(sites: Pair, how: str = "auto", **asked: Any) -> InitializationJob:
    link = sites.job(chosen=asked.pop("chosen", None), **asked.pop("link", {}))
    installers = {site.name: site.credentials(site.superuser) for site in sites.sites}
    return InitializationJob(link=link, how=How(how), **{"installers": installers} | asked)


def initialized(
    sites: Pair, how: str = "auto", *, progress: Any = None, **asked: Any
) -> InitializationReport:
    return initialize(initialization(sites, how, **asked), sites.spark, progress or (lambda step: None))


def unstamped(site: Site, *statements: str) -> None:
    """Rows that were there before Concord was: no trigger sees them."""
    modes = {"O": "", "A": "ALWAYS", "R": "REPLICA"}
    with site.connection.transaction():
        site.run("SET LOCAL session_replication_role = replica")
        found = site.rows(
            "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE tgname LIKE 'zz\\_concord\\_%'"
        )
        triggers = [(table, name, modes[mode]) for table, name, mode in found]
        site.run(*(f"ALTER TABLE {table} ENABLE TRIGGER {name}" for table, name, _ in triggers))
        site.run(*statements)
        site.run(*(f"ALTER TABLE {table} ENABLE {mode} TRIGGER {name}" for table, name, mode in triggers))
