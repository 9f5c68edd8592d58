"""Changes of a site that no trigger sees."""

from concord.databases.postgresql.capture import triggers
from tests.given.site import Site


def behind_the_back(site: Site, *statements: str) -> None:
    """As a superuser who silences the triggers: what capture would miss too, did it not fire under replica role."""
    tables = site.rows("SELECT relation, keeps_base FROM concord.replicated_table")
    for table, _ in tables:
        site.run(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    site.run(*statements)
    for table, keeps_base in tables:
        site.run(triggers.enabling(table, rows_alone=keeps_base))
