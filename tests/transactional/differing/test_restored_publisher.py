"""A publisher whose files were put back, with its slots: its log is another one than the subscriber has replayed."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from concord.databases.postgresql.log.frames import Frames
from concord.databases.postgresql.operations import kept
from concord.messages.errors import HistoryLost
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on
from tests.given.mortal_site import copy, mortal_server, put_back, while_stopped
from tests.given.replicated_sites import Replicated, begin_replicated

JOURNAL = ("CREATE TABLE journal (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, said text)",)
#: Where its log has gone on since, and where it ends before the level.
RESTORED = (
    r"^london: (it is not where the level of capetown was taken|its log has not reached the level of capetown),"
    r" as after a restore of london[,;].* run the replication's initialize__"
)
BOTH = pytest.mark.parametrize("capture", ["log", "triggers"])

Make = Callable[..., "Restored"]


class Restored:
    """London is on a server of its own, whose files are kept and put back."""

    def __init__(self, sites: Replicated, server: Server) -> None:
        self.sites, self._server = sites, server
        self._backup = server.data.parent / f"backup_{sites.name}"
        self._written = 0

    def write(self, count: int = 1) -> None:
        """So many transactions, no two with the same row."""
        for _ in range(count):
            self._written += 1
            self.sites.london.run(f"INSERT INTO journal (said) VALUES ('{self._written}')")

    def go_far(self) -> None:
        """The log goes on beyond whatever was lost of it."""
        self.sites.london.run("SELECT pg_switch_wal()")
        self.write(3)

    def keep(self) -> None:
        shutil.rmtree(self._backup, ignore_errors=True)
        self._stopped(lambda data: copy(data, self._backup))

    def restore(self) -> None:
        self._stopped(lambda data: put_back(self._backup, data))

    def _stopped(self, act: Callable[[Path], object]) -> None:
        self.sites.london.wait_for_the_links_sessions_to_end()
        while_stopped(self.sites.london, self._server, act)

    def refused(self) -> None:
        """At each run, and nothing is written."""
        before = self.sites.capetown.rows("TABLE journal")
        for _ in range(2):
            with pytest.raises(HistoryLost, match=RESTORED):
                self.sites.run()
        assert self.sites.capetown.rows("TABLE journal") == before


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = mortal_server(
        tmp_path_factory.mktemp("mortal") / "server",
        fsync="off",
        wal_level="logical",
        max_slot_wal_keep_size="50GB",
        max_wal_size="64MB",
        min_wal_size="32MB",
    )
    yield server
    server.remove()


@pytest.fixture
def restored(mortal: Server, server_with_logins: Server, database: Callable[[], Database]) -> Iterator[Make]:
    made: list[Restored] = []

    def make(**settings: object) -> Restored:
        mortal.drop_database("london")
        mortal.create_database("london")
        london = site_on(mortal, "london", "london")
        capetown = site_on(server_with_logins, "capetown", database().name)
        sites = begin_replicated(london, capetown, JOURNAL, "public.journal", **settings)
        made.append(Restored(sites, mortal))
        return made[-1]

    yield make
    for each in made:
        for site in each.sites.sites:
            site.drop_slots()
            site.connection.close()


@pytest.fixture
def no_confirmation_arrives(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on: the publisher crashes before it has the confirmation on disk, or the run before it sends it."""

    def lose() -> None:
        confirm = Frames.confirm
        monkeypatch.setattr(
            Frames, "confirm", lambda self, level, *, answer=False: confirm(self, 0, answer=answer)
        )
        monkeypatch.setattr(kept, "confirm", lambda *_: None)

    return lose


@BOTH
def test_a_publisher_that_was_put_back_is_refused_before_and_after_it_has_written_further(
    restored: Make, capture: str
) -> None:
    """New transactions were skipped in silence, since their numbers were replayed already."""
    made = restored(capture=capture)
    made.sites.initialize()
    made.write()
    made.sites.run()
    made.keep()
    made.write(3)
    made.sites.run()
    made.restore()
    made.refused()
    made.write()
    made.refused()
    made.go_far()
    made.write(30)
    made.refused()
    made.sites.initialize(replace=True)
    made.write()
    assert (made.sites.run().entries, made.sites.are_equal()) == (1, True)


@BOTH
def test_a_publisher_put_back_to_where_its_subscriber_is_goes_on(restored: Make, capture: str) -> None:
    """It has lost what nobody has replayed, and only that."""
    made = restored(capture=capture)
    made.sites.initialize()
    made.write(2)
    made.sites.run()
    made.keep()
    made.write(2)
    made.restore()
    made.write(2)
    assert (made.sites.run().entries, made.sites.are_equal()) == (2, True)


@BOTH
def test_a_publisher_that_crashed_before_it_kept_a_confirmation_goes_on(
    restored: Make, capture: str, no_confirmation_arrives: Callable[[], None]
) -> None:
    """Its log has the last entry still, with all the others."""
    made = restored(capture=capture)
    made.sites.initialize()
    no_confirmation_arrives()
    made.write(3)
    made.sites.run()
    made.sites.run()
    made.write(2)
    assert (made.sites.run().entries, made.sites.are_equal()) == (2, True)


@BOTH
def test_a_publisher_put_back_is_refused_although_nothing_was_confirmed(
    restored: Make, capture: str, no_confirmation_arrives: Callable[[], None]
) -> None:
    """Then the log alone tells whether it is the one that was replayed."""
    made = restored(capture=capture)
    made.sites.initialize()
    no_confirmation_arrives()
    made.write(3)
    made.keep()
    made.write()
    made.sites.run()
    made.restore()
    made.go_far()
    made.write(30)
    made.refused()


def test_a_transaction_at_a_place_that_an_idle_run_has_passed_is_not_skipped(restored: Make) -> None:
    """The publisher has lost none; but it has written one where the subscriber knows of none."""
    made = restored()
    made.sites.initialize()
    made.write()
    made.sites.run()
    made.keep()
    made.sites.london.run("SELECT pg_switch_wal()")
    made.sites.run()
    made.restore()
    made.write()
    made.go_far()
    made.refused()


def test_a_publisher_put_back_before_its_first_entry_is_refused(restored: Make) -> None:
    """The subscriber has its copy alone, and an idle run has passed places that the publisher writes again."""
    made = restored()
    made.sites.initialize()
    made.keep()
    made.sites.london.run("SELECT pg_switch_wal()")
    made.sites.run()
    made.restore()
    made.write()
    made.go_far()
    made.refused()


@BOTH
def test_a_publisher_put_back_to_before_the_last_copy_is_refused(restored: Make, capture: str) -> None:
    """It has the log of an earlier copy."""
    made = restored(capture=capture)
    made.sites.initialize()
    made.keep()
    made.write()
    made.sites.london.run("SELECT pg_switch_wal()")
    made.sites.initialize(replace=True)
    made.restore()
    made.write(30)
    made.go_far()
    made.refused()


@BOTH
def test_a_publisher_that_crashed_before_it_kept_the_confirmation_of_a_copy_goes_on(
    restored: Make, capture: str, no_confirmation_arrives: Callable[[], None]
) -> None:
    """Its log begins before the copy, and it has the record of the copy."""
    made = restored(capture=capture)
    made.sites.initialize()
    no_confirmation_arrives()
    made.write(3)
    made.sites.initialize(replace=True)
    made.write(2)
    assert (made.sites.run().entries, made.sites.are_equal()) == (2, True)


@BOTH
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
def test_whenever_it_is_put_back_a_run_ends_with_equal_rows_or_is_refused(
    restored: Make, capture: str, seed: int
) -> None:
    """Random histories of writes, runs, copies of the files and restores. None is refused that has lost nothing which
    its subscriber has replayed."""
    chance = random.Random(seed)
    made = restored(capture=capture)
    made.sites.initialize()
    made.keep()
    clock, copied, replayed = 1, 0, 0
    for _ in range(9):
        clock += 1
        step = chance.choice(["write", "write", "run", "run", "keep", "restore", "far"])
        if step == "write":
            made.write(chance.randint(1, 3))
        elif step == "far":
            made.go_far()
        elif step == "keep":
            made.keep()
            copied = clock
        elif step == "restore":
            made.restore()
            if copied < replayed:
                made.write(chance.choice([0, 1, 40]))
                made.refused()
                made.sites.initialize(replace=True)
                made.keep()
                copied = replayed = clock
        else:
            report = made.sites.run()
            if report.entries or capture == "log":  # an idle run passes places of the log alone
                replayed = clock
            assert made.sites.are_equal(), "a run ended well and left a transaction out"
