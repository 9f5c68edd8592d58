"""Conflicts that sites have logged come to the repository exactly once, however often a collection is killed
(F26)."""

from typing import Any

import pytest
from sqlalchemy import select

from concord.databases.postgresql.ledger import records
from concord.jobs.link import Direction
from concord.orchestration.tasks import jobs
from concord.orchestration.tasks import link as link_operator
from concord.orchestration.tasks.link import LinkOperator
from concord.repository.conflicts import collect_conflicts
from concord.repository.ledger import Chosen, entries, find
from concord.repository.models import Conflict
from tests.given.airflow_pair import NAME, Pair

pytestmark = pytest.mark.airflow

LOGGED = """
INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver, reason,
       winner_site, loser_site, winner_version, loser_version, loser_row, decided_at)
SELECT '{prefix} ' || n, 'london_capetown', 'london_capetown/forward', '{transmission}', 'public.flights',
       to_jsonb(ARRAY[n::text]), 'update_update', 'latest_timestamp', 'changed_at differs', 'london', 'capetown',
       '{{}}', '{{}}', jsonb_build_object('flight', n::text), now() + n * interval '1 ms'
  FROM generate_series(1, 25) n"""


class Killed(BaseException):
    """The task, by whoever ends it."""


def collected(pair: Pair) -> list[str]:
    with pair.repository.connect() as connection:
        return sorted(connection.scalars(select(Conflict.id)))


def collect(pair: Pair, **job: Any) -> int:
    """How many entries of the ledger the repository did not hold before."""
    link = LinkOperator(task_id="forward_link", synchronization=NAME, direction="forward", plan={})
    made = jobs.link_job(pair.configuration, NAME, Direction.FORWARD, epoch=1)
    return link._collect(pair.repository, made.model_copy(update=job)).new


def collect_and_die(pair: Pair, transmission: str) -> None:
    """At the latest after the last batch, before the transmission is recorded."""
    collect(pair, transmission=transmission)
    raise Killed


def test_a_collection_that_was_killed_at_any_batch_is_finished_by_the_next_one(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """25 entries in batches of 10: killed before the first, after each, and after the last before the task ends."""
    monkeypatch.setattr(records, "BATCH", 10)
    pair.capetown.run(LOGGED.format(prefix="a", transmission="t1"))
    for deaths in range(4):
        done = 0

        def die_after(engine: Any, rows: Any, deaths: int = deaths) -> int:
            nonlocal done
            if done == deaths:
                raise Killed
            done += 1
            return collect_conflicts(engine, rows)

        with monkeypatch.context() as patched:
            patched.setattr(link_operator, "collect_conflicts", die_after)
            with pytest.raises(Killed):
                collect_and_die(pair, "t1")
        assert len(collected(pair)) == min(10 * deaths, 25)

    pair.capetown.run(LOGGED.format(prefix="b", transmission="t2"))
    assert collect(pair, transmission="the next try") == 25, "and nothing a second time"
    assert collect(pair, transmission="and another") == 0
    assert collected(pair) == [
        row[0] for row in pair.capetown.run('SELECT id FROM concord.conflict ORDER BY id COLLATE "C"')
    ]


def test_who_overturned_what_is_collected_too_if_the_command_died_before_it_could_say(pair: Pair) -> None:
    pair.capetown.run(LOGGED.format(prefix="c", transmission="t1"))
    collect(pair)
    pair.capetown.run(
        """INSERT INTO concord.overturn (conflict, person, version, although_changed)
           VALUES ('c 7', 'ada', '{"origin": "capetown#1", "changed_at": 1, "derived": 0}', false)"""
    )
    collect(pair)
    entry = find(pair.repository, "c 7")
    assert entry.overturned_by == "ada"
    assert [each.id for each in entries(pair.repository, Chosen()) if each.overturned_at] == ["c 7"]
