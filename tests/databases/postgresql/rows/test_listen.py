"""Users' commits are announced, the applier's are not, and a watch passes over nothing (S2-30)."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator

import pytest

from concord.databases import provisioning
from concord.databases.contract.arrivals import WatchedLink
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.postgresql.rows.listen import arrivals
from concord.messages.errors import ConcordError, SiteUnavailable
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.bare_sites import Bare
from tests.given.fixtures import site_on
from tests.given.link_without_spark import carry
from tests.given.site import READER, Site, every_table, make_tables
from tests.given.two_sites import Pair

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text)",
    "CREATE TABLE author (id int PRIMARY KEY)",
    "CREATE TABLE elsewhere (id int)",
    "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 9) n",
)
ANNOUNCED = frozenset({"public.book", "public.author"})


@pytest.fixture(scope="module")
def bare(server_with_logins: Server) -> Iterator[Bare]:
    """Shared by the file: a test leaves nothing that another one would hear."""
    for name in ("watch_london", "watch_capetown"):
        server_with_logins.create_database(name)
    both = Bare(*(site_on(server_with_logins, name, f"watch_{name}") for name in ("london", "capetown")))
    for site in both.sites:
        make_tables(site, BOOK)
    yield both
    for site in both.sites:
        site.connection.close()
        server_with_logins.drop_database(site.database)


@pytest.fixture(scope="module")
def pair(bare: Bare) -> Pair:
    tables = tuple(table for table in every_table(bare.london) if table.name in ANNOUNCED)
    provisioning.provision(bare.installations(tables, announced=ANNOUNCED))
    made = Pair(bare.london, bare.capetown, tables, lambda: pytest.fail("no link here needs Spark"))
    declare_equal(made.job())
    made.london.as_application("INSERT INTO book VALUES (12)")  # its shadow row is what some tests change
    return made


@pytest.fixture
def heard(pair: Pair) -> Callable[[Callable[[], object]], list[str]]:
    """London's announcements while something is done."""

    def listen(act: Callable[[], object]) -> list[str]:
        with pair.london.log_in(READER) as ear:
            ear.execute("LISTEN concord")
            act()
            pair.london.run("NOTIFY concord, 'that was all'")
            said: list[str] = []
            for each in ear.notifies(timeout=5):
                if each.payload == "that was all":
                    return said
                said.append(each.payload)
        raise AssertionError("the last announcement did not arrive")

    return listen


Heard = Callable[[Callable[[], object]], list[str]]


@pytest.mark.parametrize(
    "edits",
    [
        ["INSERT INTO book VALUES (10)"],
        ["UPDATE book SET title = 'new' || random()"],
        ["UPDATE book SET id = -id WHERE id = 1"],
        ["DELETE FROM book WHERE id = 9"],
        ["INSERT INTO book VALUES (11) ON CONFLICT (id) DO UPDATE SET title = 'x'"],
        ["INSERT INTO book VALUES (13)", "UPDATE book SET title = 'y' WHERE id = 13"],
    ],
)
def test_a_users_transaction_is_announced_once_for_each_table(
    pair: Pair, heard: Heard, edits: list[str]
) -> None:
    assert heard(lambda: pair.london.as_application(*edits)) == ["public.book"]


def test_two_tables_of_one_transaction_are_two_announcements(pair: Pair, heard: Heard) -> None:
    both = ("INSERT INTO book VALUES (20)", "INSERT INTO author VALUES (20)")
    assert heard(lambda: pair.london.as_application(*both)) == ["public.book", "public.author"]


@pytest.mark.parametrize(
    "edits",
    [
        ["UPDATE book SET title = 'nobody' WHERE id = 4711"],
        ["INSERT INTO elsewhere VALUES (1)", "DELETE FROM book WHERE id = 4711"],
        ["INSERT INTO elsewhere VALUES (1)", "UPDATE book SET title = title"],
        ["INSERT INTO book VALUES (21)", "ROLLBACK"],
    ],
)
def test_what_changes_no_row_announces_nothing(pair: Pair, heard: Heard, edits: list[str]) -> None:
    assert heard(lambda: pair.london.as_application(*edits)) == []


def test_the_applier_under_its_setting_announces_nothing_and_anybody_else_does(
    pair: Pair, heard: Heard
) -> None:
    london, setting = pair.london, "SET LOCAL concord.applying = 'on'"
    assert heard(lambda: london.as_applier(setting, "INSERT INTO public.book VALUES (30)")) == []
    assert heard(lambda: london.as_applier("INSERT INTO public.book VALUES (31)")) == ["public.book"]
    assert heard(lambda: london.as_application(setting, "INSERT INTO book VALUES (32)")) == ["public.book"]


def test_another_tool_that_works_under_replica_role_is_heard(pair: Pair, heard: Heard) -> None:
    with pair.london.log_in(pair.london.superuser) as other:
        other.execute("SET session_replication_role = replica")
        assert heard(lambda: other.execute("INSERT INTO book VALUES (33)")) == ["public.book"]


def test_what_a_link_writes_announces_nothing_and_is_pending_for_nobody(pair: Pair, heard: Heard) -> None:
    carry(pair.job("forward"))
    pair.capetown.as_application("INSERT INTO author VALUES (40)", "UPDATE book SET title = 'from far'")
    assert heard(lambda: carry(pair.job("reverse"))) == []
    assert asyncio.run(first_answer(pair)) == frozenset()
    assert pair.london.value("SELECT count(*) FROM author WHERE id = 40") == 1


def test_who_watches_no_longer_finds_the_tables_silent_and_provisioned(bare: Bare, pair: Pair) -> None:
    triggers = "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'zzz_concord_notify' ORDER BY 1"
    assert bare.london.rows(triggers) == [("author",), ("book",)]
    only_book = bare.installations(pair.tables, announced=frozenset({"public.book"}))
    provisioning.provision(only_book)
    assert bare.london.rows(triggers) == [("book",)]
    assert provisioning.check(only_book) == []
    provisioning.provision(bare.installations(pair.tables, announced=ANNOUNCED))


def test_a_missing_announcement_is_found_by_the_check_and_stops_no_link(bare: Bare, pair: Pair) -> None:
    bare.london.run("ALTER TABLE author DISABLE TRIGGER zzz_concord_notify")
    wanted = bare.installations(pair.tables, announced=ANNOUNCED)
    assert provisioning.check(wanted) == [
        "london: commits in public.author are not announced, and wait for the schedule; run `provision`"
    ]
    carry(pair.job("forward"))
    provisioning.provision(wanted)
    assert provisioning.check(wanted) == []
    carry(pair.job("forward"))  # and nothing asks for an initialization: no change was missed


# -- listening --------------------------------------------------------------------------------------------------------


def watch(
    pair: Pair, *, listen: bool = True, poll: float | None = None, site: Site | None = None
) -> AsyncGenerator[frozenset[str], None]:
    """Watch London for the forward link."""
    link = WatchedLink("london_capetown/forward", "london", "capetown", frozenset({"public.book"}))
    return arrivals((site or pair.london).credentials(READER), link, listen=listen, poll=poll)


async def first_answer(pair: Pair) -> frozenset[str]:
    """A watch's words as it begins."""
    answers = watch(pair)
    try:
        return await asyncio.wait_for(anext(answers), 5)
    finally:
        await answers.aclose()


async def answer_to(pair: Pair, *edits: str, within: float = 5, **how: object) -> frozenset[str]:
    """The watch's answer to an edit, nothing being pending before."""
    answers = watch(pair, **how)  # type: ignore[arg-type]
    try:
        assert await anext(answers) == frozenset()
        await asyncio.to_thread(pair.london.as_application, *edits)
        return await asyncio.wait_for(anext(answers), within)
    finally:
        await answers.aclose()


@pytest.fixture
def nothing_pending(pair: Pair) -> Pair:
    carry(pair.job("forward"))
    carry(pair.job("reverse"))
    return pair


def test_what_was_committed_while_nobody_listened_is_told_first(nothing_pending: Pair) -> None:
    nothing_pending.london.as_application("UPDATE book SET title = 'unheard' WHERE id = 12")
    assert asyncio.run(first_answer(nothing_pending)) == {"public.book"}


def test_a_commit_is_heard(nothing_pending: Pair) -> None:
    edit = "UPDATE book SET title = 'heard' WHERE id = 12"
    assert asyncio.run(answer_to(nothing_pending, edit)) == {"public.book"}


def test_a_table_of_another_synchronization_is_not_told_of(nothing_pending: Pair) -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(answer_to(nothing_pending, "INSERT INTO author VALUES (50)", within=0.3))


def test_without_announcements_a_commit_is_found_by_asking_and_told_once(nothing_pending: Pair) -> None:
    # S2-30
    async def polled() -> None:
        answers = watch(nothing_pending, listen=False, poll=0.05)
        assert await anext(answers) == frozenset()
        await asyncio.to_thread(nothing_pending.london.as_application, "INSERT INTO book VALUES (51)")
        assert await asyncio.wait_for(anext(answers), 5) == {"public.book"}
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(answers), 0.3)

    asyncio.run(polled())


def test_a_transaction_that_commits_late_is_found_by_asking(nothing_pending: Pair) -> None:
    async def polled() -> None:
        with nothing_pending.london.log_in(nothing_pending.london.superuser, autocommit=False) as slow:
            slow.execute("INSERT INTO book VALUES (52)")
            answers = watch(nothing_pending, listen=False, poll=0.05)
            assert await anext(answers) == frozenset()
            await asyncio.to_thread(nothing_pending.london.as_application, "INSERT INTO book VALUES (53)")
            assert await asyncio.wait_for(anext(answers), 5) == {"public.book"}
            slow.commit()
        assert await asyncio.wait_for(anext(answers), 5) == {"public.book"}
        await answers.aclose()

    asyncio.run(polled())


def test_what_another_sites_link_brought_is_found_by_asking_and_announced_by_nobody(
    nothing_pending: Pair, heard: Heard
) -> None:
    """In a chain it is not for the site that it came from, and the next one has yet to hear of it."""
    brought = (
        """UPDATE concord."public.book" SET received_from = 'newyork', position = pg_current_xact_id()"""
    )

    def bring() -> None:
        nothing_pending.london.run(f"{brought} WHERE id = 12")

    assert heard(bring) == []
    assert asyncio.run(first_answer(nothing_pending)) == {"public.book"}


def test_who_listens_and_asks_is_told_once_of_a_commit(nothing_pending: Pair) -> None:
    async def both() -> None:
        answers = watch(nothing_pending, poll=0.2)
        assert await anext(answers) == frozenset()
        await asyncio.to_thread(nothing_pending.london.as_application, "INSERT INTO book VALUES (54)")
        assert await asyncio.wait_for(anext(answers), 5) == {"public.book"}
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(answers), 0.6)

    asyncio.run(both())


def test_a_session_that_the_server_ends_is_an_absent_site(nothing_pending: Pair) -> None:
    async def ended() -> None:
        answers = watch(nothing_pending)
        assert await anext(answers) == frozenset()
        ours = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'concord watch'"
        )
        await asyncio.to_thread(nothing_pending.london.run, ours)
        with pytest.raises(SiteUnavailable):
            await asyncio.wait_for(anext(answers), 5)

    asyncio.run(ended())


def test_a_site_that_is_not_provisioned_is_an_error_of_ours(
    pair: Pair, server_with_logins: Server, database: Callable[[], Database]
) -> None:
    empty = site_on(server_with_logins, "london", database().name)
    with pytest.raises(ConcordError, match="link_state"):
        asyncio.run(anext(watch(pair, site=empty)))
    empty.connection.close()
