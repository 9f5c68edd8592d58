"""The transactions of many sessions arrive as they were committed, whoever looks and whenever (S0-02, S0-12, S2-02)."""

import threading
from collections.abc import Callable

import pytest

from concord.databases.postgresql.entries import from_log
from tests.given.appending_writers import REGISTERS, State, Writers, state, wrong
from tests.given.replicated_sites import Replicated


class Reader:
    """Looks at the subscriber all the while."""

    def __init__(self, sites: Replicated) -> None:
        self.site = sites.capetown
        self.seen: list[State] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        with self.site.log_in(self.site.superuser) as reader:
            while not self._stop.is_set():
                self.seen.append(dict(reader.execute("SELECT key, list FROM register").fetchall()))

    def __enter__(self) -> "Reader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize(
    ("seed", "capture"),
    [(0, "log"), (0, "triggers"), *(pytest.param(seed, "log", marks=pytest.mark.long) for seed in (1, 2))],
)
def test_no_transaction_is_lost_doubled_cut_or_put_before_another(
    replicated: Callable[..., Replicated], seed: int, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-09, S4-112: four sessions commit at once, and one replays. Each transaction is in the copy or in the log."""
    monkeypatch.setattr(from_log, "OPERATIONS", 40)
    sites = replicated(REGISTERS, "public.register", capture=capture)
    with Writers(sites.london, seed=seed) as writers:
        sites.initialize(replace=True)
        with Reader(sites) as reader:
            for _ in range(4):
                sites.run()
    sites.run()
    whole = state(sites.london)
    assert sorted(each for numbers in whole.values() for each in numbers) == sorted(writers.committed * 2)
    assert state(sites.capetown) == whole
    assert [problem for each in reader.seen for problem in wrong(each, whole)] == []
    assert len({str(each) for each in reader.seen}) > 10, "the reader saw the lists grow"
