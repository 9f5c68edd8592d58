"""Random lives of rows: a history holds what a simple account of them says (S0-49)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.given.replicated_accounts import Make
from tests.given.replicated_history import histories, versions
from tests.given.replicated_sites import Replicated

KEYS = st.integers(1, 3)
ACT = st.one_of(
    st.tuples(st.just("I"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("U"), KEYS, st.integers(0, 9)),
    st.tuples(st.just("D"), KEYS, st.just(0)),
    st.tuples(st.just("K"), KEYS, KEYS),
    st.tuples(st.just("T"), st.just(0), st.just(0)),
    st.tuples(st.just("copy"), st.just(0), st.just(0)),
)
Act = tuple[str, int, int]


class Account:
    """The versions that a history should hold, by the meaning of each act alone."""

    def __init__(self) -> None:
        self.rows = dict[int, int]()
        self.versions = dict[int, list[tuple[str, int]]]()

    def add(self, key: int, operation: str, balance: int) -> None:
        self.versions.setdefault(key, []).append((operation, balance))

    def do(self, act: Act) -> str | None:
        """The statement for London; None where it would do nothing, or break its key."""
        what, key, other = act
        if what == "I" and key not in self.rows:
            self.rows[key] = other
            self.add(key, "I", other)
            return f"INSERT INTO account VALUES ({key}, 'x', {other})"
        if what == "U" and key in self.rows:
            self.rows[key] = other
            self.add(key, "U", other)
            return f"UPDATE account SET balance = {other} WHERE id = {key}"
        if what == "D" and key in self.rows:
            self.add(key, "D", self.rows.pop(key))
            return f"DELETE FROM account WHERE id = {key}"
        if what == "K" and key in self.rows and other not in self.rows:
            balance = self.rows.pop(key)
            self.rows[other] = balance
            self.add(key, "D", balance)
            self.add(other, "I", balance)
            return f"UPDATE account SET id = {other} WHERE id = {key}"
        if what == "T":
            for each in list(self.rows):
                self.add(each, "D", self.rows.pop(each))
            return "TRUNCATE account"
        return None

    @property
    def told(self) -> list[tuple[Any, ...]]:
        return [
            (key, at, operation, "x", balance)
            for key in sorted(self.versions)
            for at, (operation, balance) in enumerate(self.versions[key], 1)
        ]


def lived(sites: Replicated, acts: list[list[Act]]) -> None:
    """Each list is one transaction. A copy made anew of what has arrived changes nothing."""
    account = Account()
    for transaction in acts:
        done = [statement for act in transaction if (statement := account.do(act)) is not None]
        if done:
            sites.london.run("; ".join(["BEGIN", *done, "COMMIT"]))
        if any(what == "copy" for what, *_ in transaction):
            sites.run()
            sites.initialize(replace=True)
    sites.run()
    assert versions(sites) == account.told
    newest = sites.capetown.rows(
        "SELECT id, balance FROM (SELECT DISTINCT ON (id) * FROM reports.account_history ORDER BY id, version DESC) h"
        " WHERE operation <> 'D' ORDER BY id"
    )
    assert newest == sites.london.rows("SELECT id, balance FROM account ORDER BY id")
    order = "SELECT bool_and(entry >= before) FROM (SELECT entry, lag(entry) OVER (PARTITION BY id ORDER BY version)"
    assert sites.capetown.value(f"{order} AS before FROM reports.account_history) h") in (True, None)


def check(replicated: Make, **how: object) -> Callable[[list[list[Act]]], None]:
    sites = histories(replicated, **how)
    sites.initialize()

    def one(acts: list[list[Act]]) -> None:
        sites.london.run("DELETE FROM account")
        sites.run()
        sites.capetown.run("DELETE FROM reports.account_history")
        lived(sites, acts)

    return one


@pytest.mark.parametrize("examples", [8, pytest.param(25, marks=pytest.mark.long)])
def test_a_history_holds_every_version_of_any_life(replicated: Make, examples: int) -> None:
    """Some transactions are large ones: they give a version of each operation, too."""
    one = check(replicated, set_based_from=3)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.lists(ACT, min_size=1, max_size=5), min_size=1, max_size=8))
    def always(acts: list[list[Act]]) -> None:
        one(acts)

    always()


@pytest.mark.parametrize("examples", [4, pytest.param(10, marks=pytest.mark.long)])
def test_so_it_does_where_triggers_capture(replicated: Make, examples: int) -> None:
    one = check(replicated, capture="triggers")

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.lists(ACT, min_size=1, max_size=5), min_size=1, max_size=8))
    def always(acts: list[list[Act]]) -> None:
        one(acts)

    always()
