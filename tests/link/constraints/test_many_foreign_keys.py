"""One run repairs references of many tables: it queries each foreign key a few times, however many there are."""

from typing import Any

import pytest

from concord.databases.postgresql.constraints import foreign_keys, references
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import settle
from tests.given.two_sites import Pair

FAMILIES = 8
TABLES = [
    statement
    for n in range(FAMILIES)
    for statement in (
        f"CREATE TABLE parent_{n} (id int PRIMARY KEY)",
        f"CREATE TABLE child_{n} (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent_{n})",
        f"INSERT INTO parent_{n} VALUES (1), (2)",
    )
]


@pytest.fixture
def families(pair: MakePair) -> Pair:
    """London has a child in each table, and Cape Town has deleted its parent."""
    sites = pair(*TABLES)
    for n in range(FAMILIES):
        sites.london.run(f"INSERT INTO child_{n} VALUES (1, 1)")
        sites.capetown.run(f"DELETE FROM parent_{n} WHERE id = 1")
    return sites


def assert_repaired(sites: Pair) -> None:
    assert sites.equal
    for n in range(FAMILIES):
        assert sites.capetown.rows(f"SELECT p.id FROM child_{n} c JOIN parent_{n} p ON p.id = c.parent") == [
            (1,)
        ]
    assert len(sites.conflicts()) == FAMILIES


def test_the_number_of_foreign_keys_that_a_run_may_repair_has_no_limit(
    families: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a round. No chain here is longer than one round."""
    monkeypatch.setattr(foreign_keys, "MOST_ROUNDS", 1)
    settle(families)
    assert_repaired(families)


def test_a_repair_has_only_the_foreign_keys_of_its_own_tables_queried_again(
    families: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    queried: list[str] = []
    find = references.find

    def counted(connection: Any, foreign_key: Any, children: str, **shapes: Any) -> Any:
        queried.append(foreign_key.name)
        return find(connection, foreign_key, children, **shapes)

    monkeypatch.setattr(references, "find", counted)
    settle(families)
    assert_repaired(families)
    # First of all; the child and the parent after each repair; of all once more, before the run is done.
    first_run = FAMILIES + 2 * FAMILIES + 2 * FAMILIES
    assert len(queried) <= first_run + 3 * FAMILIES
