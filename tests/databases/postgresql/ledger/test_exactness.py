"""The ledger holds exactly the losers: an oracle says which entries there must be, to the last value."""

import random
from collections import Counter
from typing import Any, NamedTuple

import pytest

from concord.jobs.what_if import Judgement, WhatIf
from concord.rules.policy import Policy
from concord.rules.resolver import Contender
from concord.tables.manipulation import Manipulation
from concord.values.interval import Interval
from concord.versions.conflict import conflict_id, conflict_type
from concord.versions.row_version import RowVersion
from tests.given import ledger_entries
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.site import Site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

KEYS = 500
#: One site's edit of a key that is there, and of one that is not; None leaves it alone.
TO_ROWS = (
    "UPDATE item SET token = {token} WHERE id = ANY('{keys}')",
    "UPDATE item SET token = 'the same' WHERE id = ANY('{keys}')",
    "DELETE FROM item WHERE id = ANY('{keys}')",
    None,
)
TO_NEW = (
    "INSERT INTO item SELECT id, {token} FROM unnest('{keys}'::int[]) id",
    "INSERT INTO item SELECT id, 'the same' FROM unnest('{keys}'::int[]) id",
    None,
)
ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text)",
    f"INSERT INTO item SELECT id, 'common' FROM generate_series(1, {2 * KEYS}, 2) id",
)
EVER = Interval(start=0, end=2**52)


class Died(Exception):
    """The driver, at some step."""


def die() -> None:
    raise Died


def edit(sites: Pair, keys: range, source: random.Random) -> None:
    """Every key gets what each site does to it, and which of the two does so first; by set, in two phases."""
    todo: dict[tuple[int, str, str], list[int]] = {}
    for key in keys:
        names = ["london", "capetown"]
        source.shuffle(names)
        for phase, name in enumerate(names):
            if statement := _chosen(key, source):
                todo.setdefault((phase, name, statement), []).append(key)
    for (_, name, statement), chosen in sorted(todo.items()):
        site = sites.london if name == "london" else sites.capetown
        listed = "{" + ",".join(map(str, chosen)) + "}"
        site.run(statement.format(token=f"'{name} ' || id", keys=listed))
    _tie(sites, [key for key in keys if key % 5 == 0])


def _chosen(key: int, source: random.Random) -> str | None:
    """Both sites do the same to two of twenty keys, however the others fall out."""
    choices = TO_ROWS if key % 2 else TO_NEW
    return choices[1] if key % 20 in (3, 6) else source.choice(choices)


def _tie(sites: Pair, keys: list[int]) -> None:
    """The clocks of both sites say the same."""
    for site in sites.sites:
        site.run(
            f"""UPDATE concord."public.item" SET changed_at = 1700000000000000,
                       vector = vector || '{{"{site.name}#1": [1700000000000000, 0]}}'
                 WHERE id = ANY('{{{",".join(map(str, keys))}}}') AND origin = '{site.name}#1'"""
        )


class Stand(NamedTuple):
    """A site's row of a key before any link has run."""

    site: str
    version: RowVersion
    row: dict[str, str] | None


def stands(site: Site, keys: range) -> dict[int, Stand]:
    """The keys that this site's own users changed last."""
    query = f"""
SELECT s.id, to_jsonb(s), CASE WHEN t.id IS NOT NULL THEN jsonb_build_object('id', t.id::text, 'token', t.token) END
  FROM concord."public.item" s LEFT JOIN item t USING (id)
 WHERE s.origin = '{site.name}#1' AND s.id BETWEEN {keys.start} AND {keys.stop - 1} AND s.received_from IS NULL"""
    return {key: Stand(site.name, _version(stored), row) for key, stored, row in site.rows(query)}


def _version(stored: dict[str, Any]) -> RowVersion:
    vector = {origin: (at, derived) for origin, (at, derived) in stored["vector"].items()}
    return RowVersion(
        stored["origin"], stored["changed_at"], stored["derived"], vector, stored["deleted"], stored["born"]
    )


def expected(source: Stand, target: Stand, key: int, link: str) -> dict[str, Any]:
    """The entry of two concurrent versions, by the pure functions and by what stood in the tables."""
    decision = Policy().bound({}).decide(Contender(source.version), Contender(target.version))
    won, lost = (source, target) if decision.source_wins else (target, source)
    return {
        "id": conflict_id("public.item", [str(key)], source.version, target.version),
        "synchronization": "london_capetown",
        "link": link,
        "table_name": "public.item",
        "key": [str(key)],
        "type": conflict_type(source.version, target.version).value,
        "resolver": decision.resolver,
        "reason": decision.reason,
        "withheld": {},
        **{f"{side}_site": each.site for side, each in (("winner", won), ("loser", lost))},
        **{f"{side}_row": each.row for side, each in (("winner", won), ("loser", lost))},
        **{f"{side}_version": _logged(each.version) for side, each in (("winner", won), ("loser", lost))},
    }


def _logged(version: RowVersion) -> dict[str, Any]:
    vector = {origin: list(entry) for origin, entry in version.vector.items()}
    dot = {"origin": version.origin, "changed_at": version.changed_at, "derived": version.derived}
    return {**dot, "vector": vector, "deleted": version.deleted}


def run_through_deaths_and_repetitions(sites: Pair, first: str, second: str, same: int) -> None:
    """The first link dies before, while and after it logs; then all runs twice, and as a backfill of everything.

    Of as many rows as `same` it finds that both sites did the very same thing.
    """
    planned = carried(sites.run(first, plan_only=True))
    assert planned.converged == same
    for step in ("conflicts", "shadow", "remember"):
        with pytest.raises(Died):
            sites.run(first, At(step, die))
    sites.settle(first=first)
    for direction in (first, second):
        sites.run(direction, interval=EVER)


def judged_under(resolver: str, sites: Pair) -> Counter[Judgement]:
    """That policy's decision on every entry."""
    asked = WhatIf(
        Policy(resolvers=(resolver,)).bound({}), {site.name: Manipulation() for site in sites.sites}
    )
    return Counter(asked.judge(entry).judgement for entry in ledger_entries.entries(sites))


@pytest.mark.timeout(300)
def test_the_ledger_holds_exactly_the_losers_after_deaths_and_repetitions_in_either_order(
    pair: MakePair, request: pytest.FixtureRequest
) -> None:
    seed = str(request.config.getoption("hypothesis_seed"))
    print(f"seed of the edits: {seed}")  # noqa: T201 - to repeat a run
    source = random.Random(seed)
    sites = pair(*ITEM)
    logged: dict[str, dict[str, Any]] = {}
    for order, keys in (("forward", range(KEYS)), ("reverse", range(KEYS, 2 * KEYS))):
        other = "reverse" if order == "forward" else "forward"
        edit(sites, keys, source)
        london, capetown = (stands(site, keys) for site in sites.sites)
        ours, theirs = (london, capetown) if order == "forward" else (capetown, london)
        link = f"london_capetown/{order}"
        both = sorted(ours.keys() & theirs.keys())
        apart = [key for key in both if ours[key].row != theirs[key].row]
        wanted = [expected(ours[key], theirs[key], key, link) for key in apart]
        logged |= {entry["id"]: entry for entry in wanted}
        assert len(both) - len(apart) > KEYS // 10
        run_through_deaths_and_repetitions(sites, order, other, len(both) - len(apart))

        assert sites.equal
        where = sites.capetown if order == "forward" else sites.london
        found = [entry for entry in where.conflicts() if int(entry["key"][0]) in keys]
        assert len(found) == len(wanted)
        for entry in found:
            assert {name: entry[name] for name in logged[entry["id"]]} == logged[entry["id"]]

    assert Counter(each["id"] for each in sites.conflicts()).keys() == logged.keys(), "and none besides"
    assert len(sites.conflicts()) == len(logged) > KEYS // 2
    kinds = Counter((entry["type"], entry["winner_site"]) for entry in logged.values())
    assert all(entry["winner_row"] != entry["loser_row"] for entry in logged.values())
    types = ("insert_insert", "update_update", "update_delete", "delete_update")
    assert set(kinds) == {(kind, site) for kind in types for site in ("london", "capetown")}
    assert len({entry["reason"] for entry in logged.values()}) == 2, "ties as well"
    assert judged_under("latest_timestamp", sites) == Counter({Judgement.SAME: len(logged)})
    assert judged_under("delete_wins", sites)[Judgement.ANOTHER_ROW] == sum(
        entry["winner_row"] is not None and entry["loser_row"] is None for entry in logged.values()
    )
