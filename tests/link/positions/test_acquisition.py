"""Every committed change arrives, exactly, whatever is going on while a link runs."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from concord.databases.postgresql.facts.connection import connect
from concord.databases.postgresql.rows import acquire
from concord.databases.postgresql.sites.ends import Source
from concord.jobs.site import Capture
from concord.messages.errors import CountMismatch, LinkFailed, PrivilegeMissing
from concord.transmission.errors import worded
from embedded.postgres import Server
from spark_jobs.link import transmit
from spark_jobs.steps.acquire import Batches
from tests.conftest import Database
from tests.given.at_step import At
from tests.given.fixtures import MakePair, over_captures, site_on
from tests.given.goes_on import goes_on
from tests.given.mortal_site import mortal_server
from tests.given.site import APPLICATION, READER, Site
from tests.given.two_sites import Pair, begin, carried
from tests.link.positions import power_loss

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("carried_by_spark")]

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text)",
    "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 9) n",
)
_names = count()
TITLES = "SELECT id, title FROM book WHERE id >= 100 ORDER BY id"


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK)


@over_captures
def test_a_transaction_open_before_a_run_arrives_after_it_commits_and_no_run_waits(sites: Pair) -> None:
    # T02, F01
    with sites.london.log_in(APPLICATION, autocommit=False) as slow:
        slow.execute("INSERT INTO book VALUES (100, 'slow')")
        sites.london.run("INSERT INTO book VALUES (101, 'fast')")
        sites.run("forward")
        assert sites.capetown.rows(TITLES) == [(101, "fast")]
        sites.london.run("INSERT INTO book VALUES (102, 'later')")
        sites.run("forward")
        assert sites.capetown.rows(TITLES) == [(101, "fast"), (102, "later")]
        slow.commit()
    assert carried(sites.run("forward")).acquired == 1
    assert sites.capetown.rows(TITLES) == [(100, "slow"), (101, "fast"), (102, "later")]
    assert sites.run("forward").total("acquired") == 0


@over_captures
@pytest.mark.parametrize("step", ["heartbeat", "count", "stage", "write", "lock", "commit"])
def test_what_commits_during_a_run_arrives_with_the_next(sites: Pair, step: str) -> None:
    """S1-54: no site is locked meanwhile."""

    def edit() -> None:
        sites.london.run(
            "INSERT INTO book VALUES (101, 'during')", "UPDATE book SET title = 'new' WHERE id = 100"
        )

    sites.london.run("INSERT INTO book VALUES (100, 'old')")
    with goes_on():
        report = sites.run("forward", At(step, edit))
    assert carried(report).acquired == 1
    assert sites.capetown.rows(TITLES) == [(100, "old")]
    assert carried(sites.run("forward")).acquired == 2
    assert sites.capetown.rows(TITLES) == [(100, "new"), (101, "during")]
    sites.settle()
    assert sites.equal
    assert sites.conflicts() == []


def test_what_commits_between_the_fence_and_the_snapshot_arrives_at_once(sites: Pair) -> None:
    # By triggers alone: the log is read before the cut, and tells of this with the next run.
    insert = At("cut", lambda: sites.london.run("INSERT INTO book VALUES (100, 'just in time')"))
    assert carried(sites.run("forward", insert)).acquired == 1


def test_rows_that_the_source_has_counted_and_nobody_has_read_stop_the_run(
    sites: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 11: a reader that loses rows on the way must not move the position past them."""
    sites.london.run("INSERT INTO book VALUES (100, 'a'), (101, 'b')")
    whole = acquire.changes_query
    with monkeypatch.context() as patched:
        patched.setattr(acquire, "changes_query", lambda *about: f"{whole(*about)} AND t.id <> 101")
        with pytest.raises(
            CountMismatch,
            match=r"public\.book: the source counted 2 changed rows, but 1 row was read; nothing",
        ):
            sites.run("forward")
    assert sites.capetown.rows(TITLES) == []
    assert carried(sites.run("forward")).applied == 2


def test_what_a_database_refuses_a_task_is_told_in_our_words_and_of_the_table_it_concerns(
    pair: MakePair,
) -> None:
    # F61; the changes meet nothing, so that both tables are one job, without Spark SQL
    sites = pair(*BOOK, "CREATE TABLE shelf (id int PRIMARY KEY)")
    sites.london.run("INSERT INTO book VALUES (100, 'a')", "INSERT INTO shelf VALUES (1)")
    revoke = At("stage", lambda: sites.london.run(f"REVOKE SELECT ON shelf FROM {READER}"))
    with pytest.raises(
        PrivilegeMissing, match=r"^public\.shelf: permission denied for table shelf. Run `prov"
    ):
        sites.run("forward", revoke)
    assert sites.capetown.rows(TITLES) == []
    sites.london.run(f"GRANT SELECT ON shelf TO {READER}")
    assert sites.run("forward").total("applied") == 2


@pytest.mark.usefixtures("classic")
@pytest.mark.parametrize(("readers", "tasks"), [(1, 1), (2, 2), (5, 3)])
def test_tables_are_staged_together_by_no_more_tasks_than_the_site_allows_readers(
    pair: MakePair, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, readers: int, tasks: int
) -> None:
    # S0-45
    whole = Site.access.fget
    assert whole is not None
    limited = property(lambda site: whole(site).model_copy(update={"readers": readers}))
    monkeypatch.setattr(Site, "access", limited)
    sites = pair(*BOOK, *(f"CREATE TABLE shelf_{n} (id int PRIMARY KEY)" for n in (1, 2)))
    sites.london.run(
        "INSERT INTO book VALUES (100, 'a')", *(f"INSERT INTO shelf_{n} VALUES (1)" for n in (1, 2))
    )
    group = f"{readers} readers"
    spark.sparkContext.setJobGroup(group, group)
    assert sites.run("forward").total("applied") == 3
    tracker = spark.sparkContext.statusTracker()
    (job,) = (tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(group))
    assert job is not None
    (stage,) = (tracker.getStageInfo(each) for each in job.stageIds)
    assert stage is not None
    assert stage.numTasks == tasks


def test_a_worker_that_ends_is_told_in_our_words_and_the_next_run_goes_on(
    sites: Pair, spark: SparkSession
) -> None:
    # F57
    def end(batches: Batches) -> Batches:
        os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    told = r"^public\.book: its rows could not be moved: Python worker exited unexpectedly \(crashed\)"
    with pytest.raises(LinkFailed, match=told), worded("public.book"):
        spark.range(0, 1, 1, 1).mapInArrow(end, "id bigint").collect()
    sites.london.run("INSERT INTO book VALUES (100, 'a')")
    assert carried(sites.run("forward")).applied == 1


@pytest.mark.usefixtures("classic")
def test_what_a_job_of_very_many_tables_carries_to_its_tasks_is_written_to_no_disk(
    spark: SparkSession,
) -> None:
    # pyspark would write a function of more than a megabyte to a file, with the logins that are in it
    secret = f"password of a site {os.urandom(9).hex()}"
    logins = [f"{secret} {number} {os.urandom(600).hex()}" for number in range(4_000)]

    def counted(batches: Batches) -> Batches:
        assert len(logins) == 4_000
        yield from batches

    assert spark.range(0, 1, 1, 1).mapInArrow(counted, "id bigint").collect() == [(0,)]
    context = spark.sparkContext
    blocks = context._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager().localDirs()
    folders = {str(context._temp_dir), *(str(each) for each in blocks)}
    assert all(Path(each).is_dir() for each in folders)
    search = ["grep", "--recursive", "--files-with-matches", "--text", secret, *folders]
    assert subprocess.run(search, capture_output=True, check=False).stdout == b""


@over_captures
def test_a_table_left_out_of_a_run_is_sent_by_the_next(pair: MakePair) -> None:
    """Rule 1: positions move for the tables that were carried, and for no other."""
    sites = pair(*BOOK, "CREATE TABLE shelf (id int PRIMARY KEY)")
    sites.london.run("INSERT INTO book VALUES (100, 'a')", "INSERT INTO shelf VALUES (1)")
    sites.run("forward", chosen=("public.shelf",))
    assert (sites.capetown.rows(TITLES), sites.capetown.rows("TABLE shelf")) == ([], [(1,)])
    sites.run("forward")
    assert sites.capetown.rows(TITLES) == [(100, "a")]


def test_a_plan_writes_nothing_and_moves_no_position(sites: Pair) -> None:
    # By triggers alone: edits that the log tells count once a run has registered them, and a plan registers nothing.
    sites.london.run("INSERT INTO book VALUES (100, 'a')")
    before = [site.writes() for site in sites.sites]
    assert carried(sites.run("forward", plan_only=True)).applied == 1
    assert [site.writes() for site in sites.sites] == before
    assert carried(sites.run("forward")).applied == 1


@over_captures
def test_what_a_link_wrote_does_not_come_back(sites: Pair) -> None:
    sites.london.run("INSERT INTO book VALUES (100, 'a')")
    sites.run("forward")
    assert sites.run("reverse").total("acquired") == 0


@over_captures
def test_after_a_lost_session_nothing_is_left_out(sites: Pair) -> None:
    """Rule 2: a link that does not resume at its newest session sends again even what came from the target."""
    sites.capetown.run("UPDATE book SET title = 'from capetown' WHERE id = 1")
    sites.run("reverse")
    sites.run("forward")
    sites.capetown.run(
        "UPDATE concord.link_state SET history = history - 0 WHERE link = 'london_capetown/forward'"
    )
    assert carried(sites.run("forward")).converged == 1
    assert sites.run("forward").total("acquired") == 0
    assert sites.equal


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of our own to crash, whose log writer does not hurry."""
    settings = {"max_prepared_transactions": "3", "autovacuum": "off", "wal_level": "logical"}
    server = mortal_server(tmp_path_factory.mktemp("fragile") / "server", **settings)
    yield server
    server.remove()


@pytest.fixture
def fragile_sites(
    request: pytest.FixtureRequest,
    fragile: Server,
    server_with_logins: Server,
    database: Callable[[], Database],
    capture: Capture,
) -> Iterator[Pair]:
    """London stands on a server that a test may crash."""
    by_log = capture is Capture.LOG
    capetown = site_on(server_with_logins, "capetown", database().name, by_log=by_log)
    name = f"london_{next(_names)}"
    fragile.create_database(name)
    london = site_on(fragile, "london", name, by_log=by_log)
    made = begin(london, capetown, BOOK, lambda: request.getfixturevalue("spark"))
    yield made
    for site in made.sites:
        site.close()


@over_captures
def test_a_prepared_transaction_arrives_when_it_commits(fragile_sites: Pair) -> None:
    london, capetown = fragile_sites.sites
    with london.log_in(APPLICATION, autocommit=False) as connection:
        connection.execute("INSERT INTO book VALUES (100, 'prepared')")
        connection.execute("PREPARE TRANSACTION 'undecided'")
    assert fragile_sites.run("forward").total("acquired") == 0
    london.run("INSERT INTO book VALUES (101, 'other')")
    fragile_sites.run("forward")
    assert capetown.rows(TITLES) == [(101, "other")]
    london.run("COMMIT PREPARED 'undecided'")
    fragile_sites.run("forward")
    assert capetown.rows(TITLES) == [(100, "prepared"), (101, "other")]


@pytest.mark.parametrize("with_heartbeat", [False, True], ids=["without the heartbeat", "with the heartbeat"])
def test_transaction_ids_are_used_again_after_a_crash_unless_a_heartbeat_kept_them(
    fragile_sites: Pair, fragile: Server, with_heartbeat: bool
) -> None:
    """F67: the reason for the heartbeat. Without it, changes under reused ids look old."""
    source = Source(fragile_sites.job())
    shapes = source.inspect(fragile_sites.tables)[0]
    power_loss.stop_the_log_writer(fragile)
    power_loss.use_transaction_ids(fragile_sites.london, 500)
    with source.cut() as cut:
        position = {"public.book": cut.position}
    if with_heartbeat:
        source.beat()
    source.close()
    power_loss.lose_power(fragile, fragile_sites)
    for key in range(100, 110):
        fragile_sites.london.run(f"INSERT INTO book VALUES ({key}, 'after')")

    with connect(fragile_sites.london.access.reader) as reader:
        found = acquire.count_arrived(reader, shapes, position, None)["public.book"]
    assert found == (10 if with_heartbeat else 0)


@over_captures
@pytest.mark.parametrize("step", ["count", "stage", "write", "commit", "remember", "clean_up"])
def test_a_crash_of_the_source_during_a_run_loses_nothing(
    fragile_sites: Pair, fragile: Server, step: str
) -> None:
    def burn() -> None:
        power_loss.stop_the_log_writer(fragile)
        power_loss.use_transaction_ids(fragile_sites.london, 500)

    snapshot = At("cut", burn)
    crash = At(step, lambda: power_loss.lose_power(fragile, fragile_sites))
    fragile_sites.london.run("INSERT INTO book VALUES (100, 'before the crash')")

    power_loss.expect_to_fail(
        lambda: transmit(fragile_sites.job(), fragile_sites.spark, both(snapshot, crash))
    )
    for key in range(101, 110):
        fragile_sites.london.run(f"INSERT INTO book VALUES ({key}, 'after the crash')")
    fragile_sites.settle()

    assert crash.reached
    assert fragile_sites.capetown.value("SELECT count(*) FROM book WHERE id >= 100") == 10
    assert fragile_sites.equal
    assert fragile_sites.conflicts() == []


def both(one: At, other: At) -> Callable[[str], None]:
    return lambda step: (one(step), other(step))[0]
