"""A pair with edits at both sites, and how it ends whatever is killed."""

import time

from tests.given.two_sites import Pair

FLEET = (
    "CREATE TABLE plane (id int PRIMARY KEY, seats int)",
    "CREATE TABLE flight (id int PRIMARY KEY, plane int REFERENCES plane, note text)",
    "INSERT INTO plane SELECT n, 100 FROM generate_series(1, 3) n",
    "INSERT INTO flight SELECT n, n % 3 + 1 FROM generate_series(1, 9) n",
)


def edit_both(sites: Pair) -> None:
    sites.london.run(
        "INSERT INTO plane VALUES (4, 10)",
        "INSERT INTO flight VALUES (10, 4, 'london')",
        "UPDATE flight SET note = 'london' WHERE id IN (1, 2, 3)",
        "DELETE FROM flight WHERE id = 4",
        "UPDATE plane SET seats = 1 WHERE id = 1",
    )
    time.sleep(0.002)
    sites.capetown.run(
        "UPDATE flight SET note = 'capetown' WHERE id IN (3, 4, 5)",
        "DELETE FROM flight WHERE id = 2",
        "UPDATE plane SET seats = 2 WHERE id = 1",
    )


PLANES = [(1, 2), (2, 100), (3, 100), (4, 10)]

FLIGHTS = [
    *((1, 2, "london"), (3, 1, "capetown"), (4, 2, "capetown"), (5, 3, "capetown"), (6, 1, None)),
    *((7, 2, None), (8, 3, None), (9, 1, None), (10, 4, "london")),
]

CONFLICTS = [
    *(("public.flight", ["2"], "update_delete"), ("public.flight", ["3"], "update_update")),
    *(("public.flight", ["4"], "delete_update"), ("public.plane", ["1"], "update_update")),
]


def is_as_if_never_killed(sites: Pair) -> None:
    assert sites.equal
    assert sites.capetown.rows("TABLE flight ORDER BY id") == FLIGHTS
    assert sites.capetown.rows("TABLE plane ORDER BY id") == PLANES
    found = [(each["table_name"], each["key"], each["type"]) for each in sites.conflicts()]
    assert sorted(found) == CONFLICTS, "each conflict once"
