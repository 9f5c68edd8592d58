"""Names of a user's that are words of the procedure's own."""

import pytest

from tests.given.replicated_accounts import Make

COLUMNS = "n int, last int, r int, entry int, began text, converted int, orphaned int, at int, place int, number int"
ODD = f"CREATE TABLE odd ({COLUMNS}, seq int, size int, operation text, t0 int, PRIMARY KEY (n, last, r, entry))"


@pytest.mark.parametrize("updates", ["publisher", "both", "queued"])
def test_a_column_may_have_the_name_of_a_variable(replicated: Make, updates: str) -> None:
    """F89: key columns, too; row by row, and by set."""
    sites = replicated((ODD,), "public.odd", updates=updates)
    begin = sites.initialize if updates == "publisher" else sites.initialize_both_ways
    begin()
    sites.london.run(
        "INSERT INTO odd (n, last, r, entry) VALUES (1, 2, 3, 4)",
        "UPDATE odd SET began = 'x', seq = 5",
        "UPDATE odd SET n = 7",
        "INSERT INTO odd (n, last, r, entry) SELECT g, 2, 3, 4 FROM generate_series(10, 700) g",
        "UPDATE odd SET size = 3",
    )
    assert sites.run().entries == 5
    assert sites.are_equal()
