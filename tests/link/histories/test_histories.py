"""Hundreds of random histories on two to four real databases, many at once. They have edits of every kind,
transactions that commit late, clocks that jump, and links that die at any step. Cleanups die half-way, backups are
put back, sites come and go. Then rest, and every invariant of docs/proof.md that rows, versions, logs and
counts can show.

A history that goes wrong prints what happened to it; repeat it alone with LIVES_HISTORY=<number> and the same
seed."""

import os
import time
from collections.abc import Iterator
from itertools import groupby

import pytest

from concord.jobs.site import Capture
from concord.rules.policy import Policy
from concord.rules.resolver import total_order
from embedded.postgres import Server
from tests.given import version_account
from tests.given.fixtures import site_on
from tests.given.many_sites import Topology, begin_network
from tests.given.settable_clock import with_a_clock
from tests.given.site import Site
from tests.histories.life import judged_by
from tests.histories.oracle import Oracle
from tests.link.histories import visits
from tests.link.histories.batch import TABLES, Batch, common
from tests.link.histories.batch_plan import FAMILIES, ITEMS, WIDTH, Plan, plan

pytestmark = pytest.mark.spark

#: Histories of each family in one batch; fewer where logs are read. `make test` plays the second number of each.
HISTORIES, QUICK_HISTORIES = int(os.environ.get("LIVES_HISTORIES", "70")), 24
OF_LOGS, QUICK_OF_LOGS = int(os.environ.get("LIVES_OF_LOGS", "20")), 10
#: More batches: LIVES_BATCHES=20 pytest tests/link/histories/test_histories.py
BATCHES = int(os.environ.get("LIVES_BATCHES", "1"))
ONLY = os.environ.get("LIVES_HISTORY")
#: Among so many histories some bring about what a test wants to have seen; one that is repeated alone may not.
ENOUGH = 20
CONTROL = {
    *("concord.site", "concord.synchronization", "concord.link_state"),
    *("concord.log_capture", "concord.applied", "concord.replicated_table"),
}
#: The families that are lived once more with all three captures. The log is read of every second site, the others
#: have triggers, and at all of them visits are told by marks.
LOGGED = ("faults", "sites come and go")


@pytest.fixture(
    scope="module",
    params=[
        *((family, batch, Capture.TRIGGERS) for batch in range(BATCHES) for family in FAMILIES),
        *((family, batch, Capture.LOG) for batch in range(BATCHES) for family in LOGGED),
    ],
    ids=lambda param: f"{param[0]} {param[1]} {param[2]}",
)
def lives(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Batch]:
    """A batch lived to its rest, once for all tests."""
    family, batch, capture = request.param
    seed = f"{request.config.getoption('hypothesis_seed')}-{capture} {batch}"
    quick = request.config.getoption("quick") is not None
    if capture is Capture.TRIGGERS:
        planned = plan(family, seed, QUICK_HISTORIES if quick else HISTORIES)
    else:
        planned = plan(family, seed, QUICK_OF_LOGS if quick else OF_LOGS)
    planned = planned.only(int(ONLY)) if ONLY else planned
    print(f"seed of the batch: {planned.name}")  # noqa: T201 - to repeat a run
    databases: list[str] = []

    def make_site(name: str) -> Site:
        databases.append(f"lives_{abs(hash(planned.name))}_{name}")
        server_with_logins.create_database(databases[-1])
        by_log = capture is Capture.LOG and len(databases) % 2 == 1
        return with_a_clock(site_on(server_with_logins, name, databases[-1], by_log=by_log))

    topology = Topology(planned.name, planned.sites, planned.pairs)
    ddl = (*TABLES, *common(planned.histories))
    marks = {visits.NAME: visits.MARKS} if capture is Capture.LOG else {}
    network = begin_network(topology, make_site, ddl, lambda: request.getfixturevalue("spark"), marks)
    version_account.install(network)
    oracle = Oracle(judged_by(Policy())({}), total_order({}))
    lived = Batch(planned, network, server_with_logins, oracle)
    try:
        began = time.monotonic()
        lived.live()
        print(f"{len(network.reports)} links in {time.monotonic() - began:.0f} s")  # noqa: T201
        yield lived
    finally:
        for users in lived.users.values():
            users.leave()
        for site in network.sites:
            site.close()
        for database in databases:
            server_with_logins.drop_database(database)
            server_with_logins.drop_database(f"{database}_backup")


Wrong = Iterator[tuple[int, str]]  #: key, and what is wrong with it


def nothing(found: Wrong, planned: Plan) -> None:
    """Fails with what is wrong, and with all that happened to the first history that it went wrong in."""
    lines = sorted(found)
    for history, of_one in groupby(lines, lambda line: line[0] // WIDTH):
        print(f"LIVES_HISTORY={history}", *(what for _, what in of_one), sep="\n  ")  # noqa: T201
    if lines:
        print(planned.only(lines[0][0] // WIDTH))  # noqa: T201
    assert lines == []


def standing(site: Site) -> dict[int, tuple[object, ...]]:
    """Versions and rows by key; a version that all agreed to forget need not be forgotten everywhere."""
    query = (
        "SELECT coalesce(s.id, t.id), s.origin, s.changed_at, s.derived, s.vector::text, s.deleted, t.token, t.note"
        ' FROM (SELECT * FROM concord."public.item" WHERE NOT agreed) s FULL JOIN item t USING (id)'
    )
    return {key: tuple(rest) for key, *rest in site.rows(query)}


def differing(lives: Batch) -> Wrong:
    first, *others = lives.network.sites
    expected = standing(first)
    for other in others:
        found = standing(other)
        for key in expected.keys() | found.keys():
            if not lives.exact and _brought_back(expected.get(key), found.get(key)):
                continue
            if expected.get(key) != found.get(key):
                yield key, f"I1: {first.name} has {expected.get(key)}, {other.name} has {found.get(key)}"


def _brought_back(one: tuple[object, ...] | None, other: tuple[object, ...] | None) -> bool:
    """The same row, and one site has no version of it: a restored site told a version that others had forgotten."""
    if one is None or other is None:
        return False
    return one[-2:] == other[-2:] and one[-1] is not None and None in (one[0], other[0])


def test_all_sites_hold_the_same_rows_and_versions(lives: Batch) -> None:
    """I1, I10, I13, and the one-site rows of planes and seats."""
    nothing(differing(lives), lives.plan)
    assert lives.network.equal
    assert lives.wrong == []


def other_than_foreseen(lives: Batch) -> Wrong:
    for site in lives.network.sites:
        holds = lives.oracle.holds[site.name]
        rows = dict(site.rows("SELECT id, token FROM item"))
        for history in lives.plan.histories:
            for place in range(ITEMS):
                key = history * WIDTH + place
                expected = None if place % 2 else f"common {key}"
                if key in holds:
                    expected = lives.oracle.content[key, holds[key]]
                if rows.get(key) != expected:
                    yield key, f"I2, I3: {site.name} holds {rows.get(key)!r}, foreseen was {expected!r}"


def other_than_possible(lives: Batch) -> Wrong:
    left = lives.unreplaced()
    for site in lives.network.sites:
        rows = dict(site.rows("SELECT id, token FROM item"))
        for history in lives.plan.histories:
            for place in range(ITEMS):
                key = history * WIDTH + place
                possible = left.get(key, {None if place % 2 else f"common {key}"})
                if rows.get(key) not in possible:
                    yield key, f"I2, I3: {site.name} holds {rows.get(key)!r}, possible was {possible}"


def test_every_site_holds_what_the_oracle_foresees(lives: Batch) -> None:
    """After a restore: of each row one of the edits that are left, and that no other one of them was made over."""
    if lives.exact:
        nothing(other_than_foreseen(lives), lives.plan)
        return
    nothing(other_than_possible(lives), lives.plan)
    certain = [key for key, contents in lives.unreplaced().items() if len(contents) == 1]
    assert len(certain) > len(lives.plan.histories), (
        "of most rows that were edited, one content alone is possible"
    )
    assert lives.undone, "the restore has undone edits"


def misjudged(lives: Batch) -> Wrong:
    for site in lives.network.sites:
        found = set()
        for conflict in version_account.of_items(site.conflicts()):
            sides = (version_account.version(conflict[f"{side}_version"]).dot for side in ("winner", "loser"))
            found.add((int(conflict["key"][0]), frozenset(sides)))
        for fight in found - lives.oracle.log[site.name]:
            yield fight[0], f"I12: {site.name} logged {fight[1]}, which was not foreseen"
        for fight in lives.oracle.log[site.name] - found:
            yield fight[0], f"I12: {site.name} did not log {fight[1]}"


def test_the_conflict_log_of_every_site_is_exact(lives: Batch) -> None:
    """Each pair of versions that met and had not heard of each other, where it was decided, with both images."""
    needless = version_account.needless(lives.network)
    for each in needless:
        # A visit may be registered while a newcomer is proven equal: who inserted it is told by the first link alone.
        allowed = not lives.exact or each["table_name"] == visits.NAME
        assert allowed, each
        assert not each["loser_version"]["origin"], each
    assert version_account.between_alike(lives.network) == []
    if lives.exact:
        nothing(misjudged(lives), lives.plan)
        assert version_account.misrecorded(lives.account, lives.network) == []
        assert lives.losers
        few = len(lives.plan.histories) < ENOUGH
        assert few or any(lives.oracle.converged.values()), "two sites did the very same thing"


def lost(lives: Batch) -> Wrong:
    final = {token for site in lives.network.sites for (token,) in site.rows("SELECT token FROM item")}
    replaced = {old for old, new in lives.replaced if new not in lives.gone}
    accounted = final | replaced | lives.lost_tokens | lives.gone | {None}
    for (key, made), token in lives.oracle.content.items():
        if token not in accounted and (key, made) not in lives.gone_edits:
            yield key, f"I2: {token!r} of {made} is neither final, nor replaced, nor logged"


def test_every_visit_stands_everywhere_and_none_is_lost(lives: Batch) -> None:
    """I1, I2, where marks tell of changes."""
    first, *others = (set(site.rows("SELECT id, token, gone FROM visit")) for site in lives.network.sites)
    assert all(other == first for other in others)
    if lives.exact:
        assert list(lives.visits.lost({token for _, token, _ in first})) == []
    few = len(lives.plan.histories) < ENOUGH
    assert few or lives.visits.losers, "two sites wrote one visit"


def test_no_edit_is_lost_without_a_log_entry(lives: Batch) -> None:
    nothing(lost(lives), lives.plan)
    assert len(lives.oracle.content) > 3 * len(lives.plan.histories)


def stamped_anew(line: version_account.Line) -> bool:
    """An edit between a restore and its detection gets the name of the site's next life (rule 7)."""
    before, after = line.before, line.after
    same = before and (before.site, before.changed_at) == (after.site, after.changed_at)
    return bool(same and before and before.incarnation < after.incarnation)


def test_no_version_steps_back_and_nothing_writes_behind_the_account(lives: Batch) -> None:
    """I9, I11."""
    back = [line for line in version_account.steps_back(lives.account) if not stamped_anew(line)]
    nothing(((line.key, f"I9: {line}") for line in back), lives.plan)
    behind = [pair for pair in version_account.gaps(lives.account) if pair[1].before]
    assert not lives.exact or behind == []
    assert not lives.exact or version_account.changed_contents(lives.account) == {}
    for site in lives.network.sites:
        assert site.rows("SELECT id FROM item WHERE note <> md5(token)") == []


def test_the_counts_of_every_run_add_up_and_say_how_many_conflicts_it_logged(lives: Batch) -> None:
    logged = [conflict["transmission"] for conflict in lives.network.conflicts()]
    for report in lives.network.reports:
        assert all(table.adds_up for table in report.tables)
        if report.target in lives.network.by_name and lives.exact:
            assert logged.count(report.transmission) == report.total("conflicts")


def test_at_rest_nothing_is_written_and_both_ends_of_every_link_stand_at_one_session(lives: Batch) -> None:
    """I5, I8."""
    assert lives.quiet_writes <= CONTROL
    assert lives.counts["rounds"] <= 2 * lives.network.topology.diameter
    for one, other in lives.network.topology.links:
        newest = (
            f"SELECT history -> 0 FROM concord.link_state WHERE link = '{lives.network.link(one, other)}'"
        )
        assert lives.network[one].value(newest) == lives.network[other].value(newest)


def test_the_batch_did_what_it_was_for(lives: Batch) -> None:
    """A generator that has gone soft proves nothing."""
    if ONLY is None:
        family = lives.plan.name.rpartition(" ")[0].rpartition(" ")[0]
        expected = {"faults": "purged", "sites come and go": "joined", "restores": "restored"}[family]
        assert lives.counts[expected]
        assert lives.oracle.log
