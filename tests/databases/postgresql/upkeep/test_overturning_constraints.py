"""A row that gave way to another row, for a unique value or a reference, comes back once there is room for it
again."""

import pytest

from concord.messages.errors import ConstraintViolated
from tests.databases.postgresql.upkeep.overturned import overturn, refused
from tests.given import ledger_entries
from tests.given.broken_constraints import broken
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import carry
from tests.given.two_sites import Pair

TABLES = (
    "CREATE TABLE person (id int PRIMARY KEY, name text, email text UNIQUE)",
    "CREATE TABLE badge (number int PRIMARY KEY, code text NOT NULL UNIQUE)",
    "CREATE TABLE parent (id int PRIMARY KEY, name text)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent)",
    "CREATE TABLE part (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent ON DELETE CASCADE)",
    "CREATE TABLE friend (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE SET NULL)",
    "INSERT INTO parent SELECT n, 'parent ' || n FROM generate_series(1, 3) n",
)
#: The edits that make room for each, as its users would, at the site that decided.
ROOM = (
    "UPDATE person SET email = NULL WHERE email = 'one@x'",
    "DELETE FROM badge",
    "DELETE FROM child",
    "INSERT INTO parent VALUES (2, 'again'), (3, 'again')",
)
#: And what stands everywhere then.
BACK = {
    "person": [(1, "ours", "one@x"), (2, "theirs", None)],
    "badge": [(1, "gold")],
    "parent": [(2, "again"), (3, "again")],
    "child": [],
    "part": [(2, 2)],
    "friend": [(3, 3)],
}


def settle(sites: Pair) -> None:
    for direction in ("forward", "reverse") * 2:
        carry(sites.job(direction))
    assert sites.equal
    assert [name for site in sites.sites for name in broken(site)] == []


def test_it_is_refused_in_one_line_until_there_is_room_and_then_every_site_follows(pair: MakePair) -> None:
    """With the reverse link first it is the same at London."""
    sites = pair(*TABLES)
    london, capetown = sites.sites
    london.run("INSERT INTO person VALUES (1, 'ours', 'one@x')", "INSERT INTO badge VALUES (1, 'gold')")
    capetown.run("INSERT INTO person VALUES (2, 'theirs', 'one@x')", "INSERT INTO badge VALUES (2, 'gold')")
    for name, n in (("child", 1), ("part", 2), ("friend", 3)):
        london.run(f"INSERT INTO {name} VALUES ({n}, {n})")
        capetown.run(f"DELETE FROM parent WHERE id = {n}")
    settle(sites)
    entries = ledger_entries.entries(sites)
    assert {each.site for each in entries} == {"capetown"}
    assert {each.table_name for each in entries} == {
        f"public.{name}" for name in ("person", "badge", "parent", "part", "friend")
    }
    for each in entries:
        said = refused(sites, each, chosen=(each.table_name,))
        assert "it gave way to another row" in said
        assert "--even-if-changed" in said
        with pytest.raises(ConstraintViolated) as error:
            overturn(sites, each, although_changed=True, chosen=(each.table_name,))
        assert "\n" not in error.value.message
        assert "othing was written" in error.value.message

    capetown.run(*ROOM)
    for each in entries:
        overturn(sites, each, although_changed=True, chosen=(each.table_name,))
    settle(sites)
    for table, rows in BACK.items():
        assert capetown.rows(f"SELECT * FROM {table} ORDER BY 1") == rows
    assert len(ledger_entries.entries(sites)) == len(entries), (
        "each includes what it replaced: no further conflict"
    )
    for direction in ("forward", "reverse"):
        assert sum(report.acquired for report in carry(sites.job(direction)).values()) == 0, "quiet again"
