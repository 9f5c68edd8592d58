"""The samples of the document on Virtuoso, replayed as they stand there."""

from tests.given.replicated_accounts import Make

QUOTED = '"ab ""cd"'
TEST = (
    "CREATE TABLE test (id int NOT NULL, name varchar(255) NOT NULL, tm timestamptz, content text,"
    " PRIMARY KEY (id, name))",
    f"CREATE TABLE {QUOTED} (id int PRIMARY KEY, {QUOTED} text)",
)
LONG = 1_000_000


def test_the_sample_of_a_table_with_long_values_and_one_with_quotes_in_its_names(replicated: Make) -> None:
    """S4-165 to S4-168, S4-170: 4 rows and 1 are copied; then there are 5 and 3, '4' is new, and row 4 is gone."""
    sites = replicated(TEST, "public.test", f"public.{QUOTED}")
    sites.london.run(
        *(f"INSERT INTO test VALUES ({n}, 'n{n}', now(), '{n}')" for n in range(1, 5)),
        f"INSERT INTO {QUOTED} VALUES (1, 'a ''quoted'' \"text\"')",
    )
    sites.initialize()
    counts = f"SELECT (SELECT count(*) FROM test), (SELECT count(*) FROM {QUOTED})"
    assert sites.capetown.rows(counts) == [(4, 1)]

    sites.london.run(
        f"INSERT INTO test VALUES (5, 'n5', now(), repeat('x', {LONG}))",
        "INSERT INTO test VALUES (6, 'n6', now(), '6')",
        "DELETE FROM test WHERE id = 4",
        "UPDATE test SET content = '4' WHERE id = 3",
        f"INSERT INTO {QUOTED} VALUES (2, 'two')",
        f"INSERT INTO {QUOTED} VALUES (3, 'three')",
    )
    assert sites.run().entries == 6
    assert sites.capetown.rows(counts) == [(5, 3)]
    found = dict(sites.capetown.rows("SELECT id, content FROM test"))
    assert (found[3], 4 in found, len(found[5])) == ("4", False, LONG)
    assert sites.are_equal()


def test_the_shippers_of_a_demo_database_whose_rows_both_sites_change(replicated: Make) -> None:
    """S4-042: published once, by both sites written."""
    shippers = (
        "CREATE SCHEMA demo",
        'CREATE TABLE demo."Shippers" ("ShipperID" int PRIMARY KEY, "CompanyName" varchar(40), "Phone" varchar(24))',
    )
    sites = replicated(shippers, 'demo."Shippers"', updates="both")
    sites.london.run(
        "INSERT INTO demo.\"Shippers\" VALUES (1, 'Speedy Express', '(503) 555-9831'),"
        " (2, 'United Package', '(503) 555-3199'), (3, 'Federal Shipping', '(503) 555-9931')"
    )
    sites.initialize_both_ways()
    sites.london.run('UPDATE demo."Shippers" SET "Phone" = \'1\' WHERE "ShipperID" = 1')
    sites.capetown.run(
        'UPDATE demo."Shippers" SET "Phone" = \'2\' WHERE "ShipperID" = 2',
        "INSERT INTO demo.\"Shippers\" VALUES (4, 'Table Bay', NULL)",
    )
    assert [each.entries for each in sites.run_both()] == [1, 2]
    assert [row[2] for row in sites.rows('demo."Shippers"')[0]] == ["1", "2", "(503) 555-9931", None]
    assert sites.are_equal()
