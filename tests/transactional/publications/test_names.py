"""Columns and tables may be called as people like: also by words that the replay's own statements use (S4-165)."""

import pytest

from concord.databases.contract.quoting import quote
from concord.databases.registry import dialect
from concord.jobs.kept_history import KeptHistory
from concord.jobs.link import Direction
from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import EntryConflict, EntryRefused
from concord.tables.replication_set import ReplicatedTable, TableName
from concord.transactional.decide import Wanted, decide
from concord.transactional.upkeep import shown
from tests.given.refused_entry import stopped_at
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

#: Variables, aliases and columns of the statements that replay, tell and decide; and what ends a body of theirs.
NAMES = [
    *(
        "n",
        "r",
        "t",
        "w",
        "s",
        "e",
        "h",
        "v",
        "x",
        "k",
        "k0",
        "c0",
        "o0",
        "b",
        "d",
        "concord_0",
        "kept",
        "refused",
    ),
    *(
        "number",
        "seq",
        "last",
        "at",
        "size",
        "place",
        "first",
        "before",
        "is_last",
        "updated_0",
        "since",
        "done",
    ),
    *("converted", "begun", "orphaned", "mine", "failed", "level", "version", "name", "key", "image", "here"),
    *(
        "concord_made",
        "concord_lives",
        "a b",
        'Up"per',
        "quo'te",
        "%",
        "%%s",
        "\\",
        "$concord$",
        "$$",
        "z" * 63,
    ),
]
TABLE = TableName(schema_name='Some "$concord$"', name="%s's $$")
SQL = f"{quote(TABLE.schema_name)}.{quote(TABLE.name)}"
COLUMNS = ", ".join(f"{quote(name)} int" for name in NAMES)
DDL = (f"CREATE SCHEMA {quote(TABLE.schema_name)}", f"CREATE TABLE {SQL} (id int PRIMARY KEY, {COLUMNS})")
FIVE = f"INSERT INTO {SQL} SELECT {', '.join(['g'] * (len(NAMES) + 1))} FROM generate_series(1, 5) g"
LIVES = (
    *(f"UPDATE {SQL} SET {quote(name)} = {at} WHERE id < 4" for at, name in enumerate(NAMES)),
    f"UPDATE {SQL} SET id = 9 WHERE id = 2",
    f"DELETE FROM {SQL} WHERE id = 3",
)


@pytest.mark.parametrize("set_based_from", [500, 1])
def test_a_replay_takes_every_name_for_what_it_is(replicated: Make, set_based_from: int) -> None:
    sites = replicated(DDL, ReplicatedTable(table=TABLE), set_based_from=set_based_from)
    sites.initialize()
    sites.london.run(FIVE, *LIVES)
    report = sites.run()
    assert (report.entries, report.conversions) == (1 + len(LIVES), 0)
    assert sites.are_equal()


@pytest.mark.parametrize("how", list(Aside))
def test_so_do_people_who_see_a_refused_transaction_and_let_it_pass(replicated: Make, how: Aside) -> None:
    """S2-22: each value stands under its own column."""
    sites = replicated(DDL, ReplicatedTable(table=TABLE))
    sites.initialize()
    sites.london.run(FIVE)
    sites.run()
    sites.capetown.run(f"ALTER TABLE {SQL} ADD CHECK (x < 100)")
    sites.london.run(f"UPDATE {SQL} SET x = 100, t = 7 WHERE id = 1")
    with pytest.raises(EntryRefused, match="violates check constraint") as caught:
        sites.run()
    number = stopped_at(caught.value)
    [operation] = shown(sites.job(), dialect, number)
    assert (operation.key, operation.row) == (
        {"id": 1},
        {"id": 1, **dict.fromkeys(NAMES, 1), "x": 100, "t": 7},
    )
    assert operation.here == {"id": 1, **dict.fromkeys(NAMES, 1)}
    report = sites.run(set_aside=SetAside(number=number, how=how, reason="it's", by='"me"'))
    assert report.set_aside == 1


def test_so_do_people_who_decide_on_a_conflict(replicated: Make) -> None:
    """S2-21: both rows stand in the conflict log."""
    sites = replicated(DDL, ReplicatedTable(table=TABLE), updates="both")
    sites.london.run(FIVE)
    sites.initialize_both_ways()
    sites.london.run(f"UPDATE {SQL} SET t = 70, w = 71 WHERE id = 1")
    sites.capetown.run(f"UPDATE {SQL} SET t = 80, w = 81 WHERE id = 1")
    with pytest.raises(EntryConflict) as caught:
        sites.run()
    number = stopped_at(caught.value)
    decide(sites.job(), sites.job(Direction.REVERSE), dialect, Wanted(number, "london", "me"))
    [(winner, loser)] = sites.capetown.rows("SELECT winner_row, loser_row FROM concord.conflict")
    assert winner == {"id": 1, **dict.fromkeys(NAMES, 1), "t": 70, "w": 71}
    assert loser == {"id": 1, **dict.fromkeys(NAMES, 1), "t": 80, "w": 81}
    sites.run_both()
    assert sites.are_equal()


def test_so_does_a_history(replicated: Make) -> None:
    """S0-49: its versions have the time and the number of their own transaction."""
    version = 'Ver"sion'
    table = TableName(schema_name="public", name="$concord$ history")
    sites = _history(replicated, table, version)
    sites.london.run(FIVE, *LIVES)
    assert sites.run().conversions == 0
    found = sites.capetown.rows(
        f'SELECT id, count(*), max({quote(version)}), count(DISTINCT entry), min("concord_made")'
        f" FROM {quote(table.name)} GROUP BY id ORDER BY id"
    )
    many = 1 + len(NAMES)
    at = NAMES.index("concord_made")
    assert found == [
        (1, many, many, many, 1),
        (2, many + 1, many + 1, many + 1, 2),
        (3, many + 1, many + 1, many + 1, 3),
        (4, 1, 1, 1, 4),
        (5, 1, 1, 1, 5),
        (9, 1, 1, 1, at),
    ]


def _history(replicated: Make, table: TableName, version: str) -> Replicated:
    own = f"{quote(version)} bigint, operation text, committed_at timestamptz, entry bigint"
    ddl = f"CREATE TABLE {quote(table.name)} (id int, {COLUMNS}, {own}, PRIMARY KEY (id, {quote(version)}))"
    source = ReplicatedTable(table=TABLE, at={"capetown": table})
    sites = replicated((*DDL, ddl), source, history={str(TABLE): KeptHistory(version=version)})
    sites.initialize()
    return sites
