"""Three applications, each as its users and whoever runs Concord have it, from the first load to equal sites.

Users insert through the sequences of their site, and none of these inserts is refused. They change and delete rows at
both sites at once, so that rows, unique values and references are in conflict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.link.applications.catalogue import ForeignKey, Table
from tests.link.applications.conftest import APPLICATIONS, NAME, Installed, MakeInstalled
from tests.link.applications.random_rows import Parents
from tests.link.applications.users import Key, Users

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

#: References whose parents are deleted while they get a child: each costs the run a repair.
MOST_PARENTS = 40
#: Keys that each site got from its own users, by table.
Inserted = dict[str, list[Key]]


@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_is_loaded_edited_at_both_sites_and_ends_equal(
    install: MakeInstalled, name: str
) -> None:
    sites = install(APPLICATIONS[name])
    sites.concord("provision")
    assert sites.concord("provision", "--check")["problems"] == []
    loaded = sites.concord("initialize", NAME)["tables"]
    assert {row["how"] for row in loaded} == {"load"}
    assert sum(row["rows"] for row in loaded) > 1000

    insert_everywhere(sites)
    for table in sites.tables.values():
        edit(sites.london, table)
        edit(sites.capetown, table)
        contend_for_rows(sites, table)
        contend_for_values(sites, table)
    contend_for_parents(sites)
    settle(sites)
    assert conflict_types(sites) >= {"update_update", "uniqueness", "foreign_key"}
    assert_equal(sites)

    counted = beside_the_counter(sites)
    inserted = insert_everywhere(sites)
    count_at_both_sites(sites)
    synchronize(sites)
    assert_equal(sites)
    assert beside_the_counter(sites).items() >= counted.items()
    for users in sites.users.values():
        lacking = {name: {*keys} - {*users.keys(sites.tables[name])} for name, keys in inserted.items()}
        assert not any(lacking.values()), lacking


def insert_everywhere(sites: Installed) -> Inserted:
    """Two rows into each table at each site, through its sequences; what is refused is an error."""
    return {
        name: [
            tuple(row[column] for column in table.key)
            for users in sites.users.values()
            for row in users.insert_many(table, 2)
        ]
        for name, table in sites.tables.items()
    }


def edit(users: Users, table: Table) -> None:
    for key in some(users, table, 3):
        users.update(table, key)
    users.delete(table, some(users, table, 5))


def some(users: Users, table: Table, number: int) -> list[Key]:
    keys = users.keys(table)
    return users.rows.random.sample(keys, min(number, len(keys)))


def contend_for_rows(sites: Installed, table: Table) -> None:
    """Both sites update one row; one updates another row that the other site deletes."""
    common = sorted({*sites.london.keys(table)} & {*sites.capetown.keys(table)})
    for key in sites.london.rows.random.sample(common, min(2, len(common))):
        sites.london.update(table, key)
        sites.capetown.update(table, key)
    for updating, deleting in (sites.users.values(), reversed(sites.users.values())):
        if deleted := deleting.delete(table, some(updating, table, 5)):
            updating.update(table, tuple(deleted[name] for name in table.key))


def contend_for_values(sites: Installed, table: Table) -> None:
    """Both sites insert a row with one unique value, or with one key that users choose."""
    columns = table.columns
    chosen = [
        names for names in (*table.uniques, table.key) if not any(columns[name].filled for name in names)
    ]
    emails = [name for name, column in columns.items() if column.domain == "email"]
    if table.name in sites.london.inserts or not (chosen or emails):
        return
    row = sites.london.insert(table)
    fixed = {name: row[name].upper() for name in emails} or {name: row[name] for name in chosen[0]}
    if all(there(sites.capetown, key, fixed) for key in table.foreign_keys):
        sites.capetown.insert(table, fixed)


def there(users: Users, key: ForeignKey, row: dict[str, Any]) -> bool:
    """Do the users' rows have the parent, where the row says which?"""
    if not row.keys() >= set(key.columns):
        return True
    return tuple(row[name] for name in key.columns) in Parents(users.session).of(key)


def contend_for_parents(sites: Installed) -> None:
    """One site deletes a parent for which the other one inserts a child."""
    ends = [(sites.london, sites.capetown), (sites.capetown, sites.london)]
    found = list(references(sites))
    chosen = sites.london.rows.random.sample(found, min(len(found), MOST_PARENTS))
    for number, (child, key) in enumerate(chosen):
        deleting, inserting = ends[number % 2]
        parent = sites.tables[key.parent]
        keys = [each for each in some(deleting, parent, 8) if each in inserting.keys(parent)]
        if deleted := deleting.delete(parent, keys):
            values = (deleted[name] for name in key.parent_columns)
            inserting.insert(child, dict(zip(key.columns, values, strict=True)))


def references(sites: Installed) -> Iterator[tuple[Table, ForeignKey]]:
    for table in sites.tables.values():
        if table.name not in sites.london.inserts:
            yield from ((table, key) for key in table.foreign_keys)


def beside_the_counter(sites: Installed) -> dict[Any, int]:
    """By how much the application's counter differs from what it counts: a key, and the difference."""
    if (counter := sites.application.counter) is None:
        return {}
    return dict(sites.superusers["capetown"].execute(counter.difference.encode()).fetchall())


def count_at_both_sites(sites: Installed) -> None:
    """Each site inserts what the counter of one row counts."""
    if counter := sites.application.counter:
        (parent,) = some(sites.london, sites.tables[counter.of], 1)
        for users in sites.users.values():
            users.insert(sites.tables[counter.counts], {counter.by: parent[0]})


def settle(sites: Installed) -> None:
    """Run both links until a run has nothing to carry."""
    for _ in range(5):
        if synchronize(sites) == 0:
            return
    raise AssertionError("the links do not come to rest")


def synchronize(sites: Installed) -> int:
    """Run both links; how many rows they carried. No row waits, and no table stops."""
    rows = sites.concord("synchronize", NAME)["tables"]
    assert [row for row in rows if row["held"] or row["quarantined"] or row["stopped"]] == []
    return sum(row["acquired"] for row in rows)


def conflict_types(sites: Installed) -> set[str]:
    query = "SELECT DISTINCT type FROM concord.conflict"
    return {kind for each in sites.superusers.values() for (kind,) in each.execute(query)}


def assert_equal(sites: Installed) -> None:
    """By Concord's comparison; and every foreign key can be declared once more at both sites."""
    compared = sites.concord("compare", NAME)
    found = Counter[str]()
    for row in compared["tables"]:
        found.update({name: count for name, count in row.items() if isinstance(count, int)})
    assert len(compared["tables"]) == len(sites.tables)
    assert found["equal"] == found["source_rows"] == found["target_rows"]
    different = ("differing", "versions", "only_source", "only_target", "in_flight")
    assert {name: found[name] for name in different} == dict.fromkeys(different, 0)
    for superuser in sites.superusers.values():
        declared = superuser.execute(
            "SELECT format('ALTER TABLE %s ADD %s', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint"
            " WHERE contype = 'f' AND connamespace::regnamespace::text !~ '^concord'"
        ).fetchall()
        assert declared
        with superuser.transaction(force_rollback=True):
            for (statement,) in declared:
                superuser.execute(statement)
