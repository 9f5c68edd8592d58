"""A site whose clock a session can set."""

from tests.given.site import Site

#: Every session of the database sees the clock of its site, the capture trigger's first of all.
CLOCK = (
    "SET allow_system_table_mods = on",
    "ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO clock_of_the_machine",
    "CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT"
    " clock_of_the_machine() + coalesce(nullif(current_setting('test.ahead', true), ''), '0')::interval $$",
    "RESET allow_system_table_mods",
)


def with_a_clock(site: Site) -> Site:
    site.run(*CLOCK)
    return site
