"""The entries of the conflict log: both rows, both versions, who won and why, and no pair of versions twice."""

import pytest

from concord.rules.policy import Policy
from concord.versions.conflict import ConflictType, conflict_id
from concord.versions.row_version import RowVersion
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import LINK, SYNCHRONIZATION, Change, WrittenSite, made

BOOK = "CREATE TABLE book (id int PRIMARY KEY, title text, price numeric, cover bytea, sold timestamptz)"
HERE = {
    "id": 7,
    "title": "here",
    "price": "1.50",
    "cover": "\\x00ff",
    "sold": "2026-01-02 03:04:05.678901+00",
}
THERE = {"id": 7, "title": "there", "price": "1.5", "cover": None, "sold": "infinity"}
OURS, THEIRS = made("capetown", 10), made("london", 20)


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    return written_site(BOOK)


def image(row: dict[str, object]) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in row.items()}


def stored(version: RowVersion) -> dict[str, object]:
    vector = {origin: list(dot) for origin, dot in version.vector.items()}
    origin, changed_at, derived = version.dot
    return {
        "origin": origin,
        "changed_at": changed_at,
        "derived": derived,
        "vector": vector,
        "deleted": version.deleted,
    }


@pytest.mark.parametrize("source_wins", [True, False])
def test_an_entry_holds_both_rows_exactly_both_versions_and_who_decided(
    target: WrittenSite, source_wins: bool
) -> None:
    ours = OURS if source_wins else made("capetown", 30)
    target.keep(HERE, ours)
    job = target.job()
    target.write(Change(THERE, THEIRS), job=job)
    (entry,) = target.conflicts()
    sides = [("london", THEIRS, THERE), ("capetown", ours, HERE)]
    winner, loser = sides if source_wins else reversed(sides)
    del entry["decided_at"]
    assert entry == {
        "id": conflict_id("public.book", ["7"], ours, THEIRS),
        "synchronization": SYNCHRONIZATION,
        "link": LINK,
        "transmission": job.transmission,
        "table_name": "public.book",
        "key": ["7"],
        "type": "update_update",
        "resolver": "latest_timestamp",
        "reason": "changed_at differs",
        "withheld": {},
        **{f"winner_{name}": value for name, value in _side(*winner).items()},
        **{f"loser_{name}": value for name, value in _side(*loser).items()},
    }


def _side(site: str, version: RowVersion, row: dict[str, object]) -> dict[str, object]:
    return {"site": site, "version": stored(version), "row": image(row)}


@pytest.mark.parametrize("at", [10, 30], ids=["the source wins", "the target wins"])
@pytest.mark.parametrize("deleted", ["here", "there"])
def test_of_a_deleted_row_no_row_is_logged(target: WrittenSite, at: int, deleted: str) -> None:
    ours = made("capetown", at, deleted=deleted == "here")
    target.keep(HERE, ours)
    target.write(Change(THERE, made("london", 20, deleted=deleted == "there")))
    (entry,) = target.conflicts()
    rows = {entry["winner_site"]: entry["winner_row"], entry["loser_site"]: entry["loser_row"]}
    kept = image(THERE) if deleted == "here" else image(HERE)
    assert (
        rows == {"capetown": None, "london": kept}
        if deleted == "here"
        else {"capetown": kept, "london": None}
    )
    assert entry["type"] == ("update_delete" if deleted == "here" else "delete_update")


def test_the_winners_site_is_that_of_its_version_also_where_another_link_brought_it(
    target: WrittenSite,
) -> None:
    target.keep(HERE, made("oslo", 30))
    target.write(Change(THERE, made("dublin", 20, incarnation=2)))
    (entry,) = target.conflicts()
    assert (entry["winner_site"], entry["loser_site"]) == ("oslo", "dublin")


def test_one_pair_of_versions_is_logged_once_whoever_finds_it_again(target: WrittenSite) -> None:
    """The other link, or a run of which the answer was lost, finds the same pair."""
    target.keep(HERE, OURS)
    first = target.write(Change(THERE, THEIRS))
    assert first.counts["conflicts"] == 1
    target.site.run("DELETE FROM book", 'DELETE FROM concord."public.book"')
    target.keep(THERE, THEIRS)
    mirrored = target.write(Change(HERE, OURS))
    assert mirrored.verdict(7).verdict == "target_wins"
    assert "conflicts" not in mirrored.counts, "the report counts what was logged"
    assert len(target.conflicts()) == 1


def test_what_was_decided_in_a_conflict_is_decided_once(target: WrittenSite) -> None:
    target.keep(HERE, OURS)
    target.write(Change(THERE, THEIRS))
    assert target.write(Change(THERE, THEIRS)).counts == {"acquired": 1, "converged": 1}
    assert target.write(Change(HERE, OURS)).counts == {"acquired": 1, "superseded": 1}
    assert len(target.conflicts()) == 1


def test_every_loser_of_several_conflicts_of_one_row_is_logged(target: WrittenSite) -> None:
    target.keep(HERE, OURS)
    for site in ("london", "oslo", "dublin"):
        target.write(Change({**THERE, "title": site}, made(site, 5)))
    assert {(each["winner_site"], each["loser_row"]["title"]) for each in target.conflicts()} == {
        ("capetown", "london"),
        ("capetown", "oslo"),
        ("capetown", "dublin"),
    }


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("id int PRIMARY KEY", "insert_insert"),
        ("id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "identity_collision"),
        ("id serial PRIMARY KEY", "identity_collision"),
    ],
)
def test_one_key_inserted_twice_is_a_collision_where_sites_make_the_keys(
    written_site: MakeWritten, key: str, kind: str
) -> None:
    target = written_site(f"CREATE TABLE seat ({key}, name text)")
    target.keep({"id": 1, "name": "here"}, made("capetown", 10, born=True))
    target.write(Change({"id": 1, "name": "there"}, made("london", 20, born=True)))
    (entry,) = target.conflicts()
    assert entry["type"] == kind
    assert target.row(1) == {"id": 1, "name": "there"}


def test_a_row_that_both_know_is_updated_twice_although_both_say_that_it_was_inserted(
    target: WrittenSite,
) -> None:
    common = made("oslo", 1, born=True)
    target.keep(HERE, made("capetown", 10, common, born=True))
    target.write(Change(THERE, made("london", 20, common, born=True)))
    assert [each["type"] for each in target.conflicts()] == ["update_update"]


def test_a_key_of_several_columns_is_logged_in_the_order_of_their_names(written_site: MakeWritten) -> None:
    target = written_site(
        "CREATE TABLE seat (row_no int, origin text, name text, PRIMARY KEY (row_no, origin))"
    )
    target.keep({"row_no": 3, "origin": "x", "name": "here"}, OURS)
    target.write(Change({"row_no": 3, "origin": "x", "name": "there"}, THEIRS))
    (entry,) = target.conflicts()
    assert entry["key"] == ["x", "3"]
    assert entry["id"] == conflict_id("public.seat", ["x", "3"], OURS, THEIRS)


def test_the_decision_and_the_reason_of_spark_are_logged_as_they_were_given(target: WrittenSite) -> None:
    target.keep(HERE, made("capetown", 30))
    change = Change(THERE, THEIRS).decided("source_wins", made("capetown", 30))
    assert target.write(change).counts["applied"] == 1
    (entry,) = target.conflicts()
    assert (entry["resolver"], entry["reason"], entry["winner_site"]) == ("by Spark", "said so", "london")


def test_a_decision_of_spark_against_a_version_that_is_gone_is_taken_again(target: WrittenSite) -> None:
    """The row was edited between detection and the lock."""
    target.keep(HERE, made("capetown", 30))
    change = Change(THERE, THEIRS).decided("source_wins", OURS)
    assert target.write(change).counts["lost"] == 1
    (entry,) = target.conflicts()
    assert (entry["resolver"], entry["winner_site"]) == ("latest_timestamp", "capetown")


def test_a_decision_of_spark_is_void_once_the_target_has_heard_of_it_otherwise(target: WrittenSite) -> None:
    """A third site has told the target meanwhile that the conflict is settled."""
    settled = made("capetown", 30, THEIRS)
    target.keep(HERE, settled)
    change = Change(THERE, THEIRS).decided("source_wins", settled)
    assert target.write(change).counts == {"acquired": 1, "superseded": 1}
    assert target.conflicts() == []
    assert target.row(7) is not None


def test_a_decision_of_spark_is_void_between_versions_that_include_each_other(target: WrittenSite) -> None:
    """The total order settles those, the same at every site (rule 4)."""
    ours = made("capetown", 30, THEIRS)
    theirs = RowVersion("london#1", 20, 0, ours.vector)
    target.keep(HERE, ours)
    written = target.write(Change(THERE, theirs).decided("source_wins", ours))
    assert written.counts == {"acquired": 1, "superseded": 1}
    assert target.conflicts() == []


@pytest.mark.parametrize(("ours", "theirs"), [(True, True), (True, False), (False, True)])
def test_the_chain_of_inserts_decides_where_both_were_inserted_alone(
    target: WrittenSite, ours: bool, theirs: bool
) -> None:
    earliest = {ConflictType.INSERT_INSERT: ("earliest_timestamp",)}
    target = target.configured(policy=Policy(by_type=earliest))
    target.keep(HERE, made("capetown", 10, born=ours))
    written = target.write(Change(THERE, made("london", 20, born=theirs)))
    assert written.verdict(7).verdict == ("target_wins" if ours and theirs else "source_wins")


@pytest.mark.parametrize("resolver", ["maximum(price)", "minimum(price)"])
def test_a_resolver_that_compares_values_sees_both_rows_under_lock(
    target: WrittenSite, resolver: str
) -> None:
    target = target.configured(policy=Policy(resolvers=(resolver,)))
    target.keep({"id": 7, "price": "9.99"}, OURS)
    written = target.write(Change({"id": 7, "price": "10"}, made("london", 5)))
    wins = "source_wins" if resolver.startswith("max") else "target_wins"
    assert (written.verdict(7).verdict, written.verdict(7).resolver) == (wins, resolver)
