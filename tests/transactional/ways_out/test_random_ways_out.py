"""Random histories of both sites' users, whose conflicts end by ways out that random sides take (docs/both-ways.md).

Afterwards both sites are equal, and every foreign key holds. The last row that a user wrote stands, or is in the
conflict log of that site. Rows that no user of the site wrote are not there, and no row gave way but by a person's
decision.
"""

import json
import random
import re
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
import pytest

from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.messages.errors import ConstraintViolated, EntryConflict
from concord.transactional.going_on import going_on
from tests.given.contests import OTHER, decided
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import Site

STOCK = (
    "CREATE TABLE part (id int PRIMARY KEY, name text, code int UNIQUE)",
    "CREATE TABLE stock (depot int PRIMARY KEY, part int REFERENCES part, pieces int)",
)
KEYS = {"part": "id", "stock": "depot"}
PARTS, DEPOTS, CODES = 5, 4, 6
#: By table and key: a row, as JSON; None: it was deleted.
Written = dict[tuple[str, int], list[str | None]]


@dataclass
class History:
    """One round: the rows that users of each site wrote, and those that they repaired by hand."""

    sites: Replicated
    chance: random.Random
    written: dict[str, Written] = field(default_factory=lambda: {"london": {}, "capetown": {}})
    repaired: set[tuple[str, int]] = field(default_factory=set)
    gave_way: int = 0  #: rows, by a person's decisions
    began: dict[tuple[str, int], str] = field(init=False)

    def __post_init__(self) -> None:
        self.began = rows(self.sites.london)

    def write(self, site: Site, *statements: str) -> set[tuple[str, int]]:
        """One transaction of a user's, which the site itself may refuse; the rows that it changed."""
        before = rows(site)
        with suppress(psycopg.IntegrityError):
            site.run("BEGIN", *statements, "COMMIT")
        with suppress(psycopg.Error):
            site.run("ROLLBACK")
        after = rows(site)
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        for key in changed:
            self.written[site.name].setdefault(key, []).append(after.get(key))
        return changed

    def repair(self) -> None:
        """A row is made what it is at the other site."""
        mine, theirs = self.chance.sample(self.sites.sites, 2)
        here, there = rows(mine), rows(theirs)
        unlike = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
        if unlike:
            table, key = self.chance.choice(unlike)
            image = there.get((table, key))
            other = f"INSERT INTO {table} SELECT * FROM json_populate_record(NULL::{table}, '{image}')"
            deleted = f"DELETE FROM {table} WHERE {KEYS[table]} = {key}"
            self.repaired |= self.write(mine, deleted, *([other] if image else []))


def rows(site: Site) -> dict[tuple[str, int], str]:
    """All of both tables."""
    return {
        (table, key): json.dumps(row)
        for table, name in KEYS.items()
        for key, row in site.rows(f"SELECT {name}, to_jsonb(t) FROM {table} t")
    }


def statement(chance: random.Random) -> str:
    part, depot, code = chance.randint(1, PARTS), chance.randint(1, DEPOTS), chance.randint(1, CODES)
    value = chance.randrange(10**6)
    return chance.choice(
        [
            f"UPDATE part SET name = '{value}' WHERE id = {part}",
            f"UPDATE part SET code = {code} WHERE id = {part}",
            f"UPDATE part SET code = NULL WHERE code = {code}; INSERT INTO part VALUES ({part}, '{value}', {code})"
            " ON CONFLICT (id) DO UPDATE SET code = excluded.code",
            f"DELETE FROM part WHERE id = {part}",
            f"DELETE FROM stock WHERE part = {part}; DELETE FROM part WHERE id = {part}",
            f"INSERT INTO stock VALUES ({depot}, {part}, {value})"
            " ON CONFLICT (depot) DO UPDATE SET part = excluded.part, pieces = excluded.pieces",
            f"UPDATE stock SET pieces = {value} WHERE depot = {depot}",
            f"DELETE FROM stock WHERE depot = {depot}",
        ]
    )


def stopped(sites: Replicated) -> dict[Direction, int]:
    """A run of each direction; the entry at which it stops."""
    found = {}
    for direction in Direction:
        epoch = sites.job().epoch
        job, back = sites.job(direction, epoch=epoch), sites.job(OTHER[direction], epoch=epoch)
        try:
            going_on(job, back, dialect, lambda way=direction, now=epoch: sites.run(direction=way, epoch=now))
        except EntryConflict as conflict:
            [number] = re.findall(r"entry (\d+),", conflict.message)
            found[direction] = int(number)
    return found


def end(history: History) -> None:
    """Ways out until nothing stops: random ones at first, and then each that is left until one works."""
    sites, chance = history.sites, history.chance
    for attempt in range(40):
        if not (found := stopped(sites)):
            return
        if chance.random() < 0.4:
            history.repair()
            continue
        direction = chance.choice(sorted(found))
        ways = [(way, site.name) for way in found for site in sites.sites]
        for way, winner in [(direction, chance.choice(["london", "capetown"]))] if attempt < 20 else ways:
            with suppress(ConstraintViolated):
                history.gave_way += decided(sites, found[way], winner, way)
                break
    pytest.fail("no way out ends the conflicts")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
def test_whichever_way_out_a_side_takes_all_ends_equal_and_losers_alone_are_logged(
    replicated: Make, seed: int
) -> None:
    chance = random.Random(seed)
    sites = replicated(STOCK, "public.part", "public.stock", updates="both")
    sites.london.run(
        f"INSERT INTO part SELECT n, 'part', n FROM generate_series(1, {PARTS - 1}) n",
        f"INSERT INTO stock SELECT n, n, 1 FROM generate_series(1, {DEPOTS - 1}) n",
    )
    sites.initialize_both_ways()
    for _ in range(8):
        history = History(sites, chance)
        for site in sites.sites:
            site.run("DELETE FROM concord.conflict")
            for _ in range(chance.randint(1, 3)):
                history.write(site, *(statement(chance) for _ in range(chance.randint(1, 3))))
        end(history)
        assert sites.are_equal()
        for site in sites.sites:
            assert (
                site.rows("SELECT FROM stock s WHERE NOT EXISTS (SELECT FROM part p WHERE p.id = s.part)")
                == []
            )
            logged(history, site)
        assert sum(len(site.conflicts()) for site in sites.sites) == history.gave_way


def logged(history: History, site: Site) -> None:
    """Nothing that no user of this site wrote, and all that a user wrote last and that stands nowhere."""
    written, stands = history.written[site.name], rows(site)
    losers: Written = {}
    for each in site.conflicts():
        key = (each["table_name"].removeprefix("public."), int(each["key"][0]))
        losers.setdefault(key, []).append(each["loser_row"] and json.dumps(each["loser_row"]))
    for key, images in losers.items():
        assert set(images) <= set(written.get(key, [])), f"{site.name}: nobody wrote {key}: {images}"
    for key, images in written.items():
        last = images[-1]
        if key not in history.repaired and last not in {None, history.began.get(key), stands.get(key)}:
            assert last in losers.get(key, []), f"{site.name}: {key}: {last} is lost"
