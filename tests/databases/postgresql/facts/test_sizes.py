"""How large tables are said to be: by PostgreSQL's own estimate, or counted where it has none (S0-05)."""

from concord.databases.postgresql.facts.sizes import sizes
from concord.values.identifier import parse_table_name
from tests.given.bare_sites import Bare

QUOTED = 'public."ab ""cd"'


def test_tables_are_estimated_by_their_pages_and_counted_before_the_first_analyze(sites: Bare) -> None:
    """S0-05"""
    london = sites.london
    london.run(
        f"CREATE TABLE {QUOTED} (id int)",
        f"INSERT INTO {QUOTED} SELECT generate_series(1, 100)",
        "CREATE TABLE grown (id int) WITH (autovacuum_enabled = off)",
        "INSERT INTO grown SELECT generate_series(1, 10000)",
        "ANALYZE grown",
        "INSERT INTO grown SELECT generate_series(1, 10000)",
        f"GRANT SELECT ON {QUOTED}, grown TO PUBLIC",
    )
    names = [parse_table_name(name) for name in (QUOTED, "public.grown", "public.missing")]
    counted, estimated = sizes(london.access, names)
    assert (counted.table, counted.rows, counted.bytes >= 8_192) == ('public.ab "cd', 100, True)
    assert abs(estimated.rows - 20_000) < 500
    assert estimated.bytes > 20_000 * 30
