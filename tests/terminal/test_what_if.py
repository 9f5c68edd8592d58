"""`conflicts what-if` and `show` about entries that an earlier release left in the repository."""

import pytest

from concord.repository.conflicts import collect_conflicts
from tests.given.airflow_pair import Pair
from tests.given.typed_commands import Terminal
from tests.repository.records import conflict

pytestmark = pytest.mark.airflow

WHOLE = {
    "origin": "london#1",
    "changed_at": 7,
    "derived": 0,
    "vector": {"london#1": [7, 0]},
    "deleted": False,
}
OTHER = {**WHOLE, "origin": "capetown#1", "vector": {"capetown#1": [7, 0]}}


def test_entries_of_an_earlier_release_are_counted_and_stop_neither_what_if_nor_show(
    unprovisioned: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = {"winner_row": {"flight": "1"}, "key": ["1"], "conflict_type": "update_update"}
    collect_conflicts(
        unprovisioned.repository,
        [
            conflict("a" * 64, winner_version={}, loser_version=WHOLE, resolver="person", **changed),
            conflict("b" * 64, winner_version={}, loser_version=WHOLE, **changed),
            conflict("c" * 64, winner_version=OTHER, loser_version=WHOLE, site="oslo", **changed),
            conflict("d" * 64, winner_version=OTHER, loser_version=WHOLE, resolver="repair", **changed),
            conflict("e" * 64, winner_version=OTHER, loser_version=WHOLE, **changed),
        ],
    )
    terminal = Terminal(monkeypatch, capsys)
    answer = terminal("conflicts", "what-if", "--policy", "earliest_timestamp")
    assert answer.status == 0, answer.err
    assert answer.out.splitlines()[-3:] == [
        "could not be re-evaluated: 2, because a version of it was not kept",
        "could not be re-evaluated: 1, because its site has left the configuration",
        "could not be re-evaluated: 1, because it was decided by repair, not by a policy",
    ]
    assert "its version was not kept" in terminal("conflicts", "show", "bbbb").out
    time = "1970-01-01 00:00:00.000007 UTC"
    assert f"capetown#1 {time}; has seen capetown#1 {time}\n" in terminal("conflicts", "show", "cccc").out
    refused = terminal("conflicts", "overturn", "bbbb")
    assert refused.status == 1
    assert "the version that won was not kept" in refused.err
    assert len(refused.err.splitlines()) == 1
