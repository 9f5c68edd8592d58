"""One staged row meets the present version: the verdict, and the row, the version and the log that it leaves."""

from dataclasses import replace
from typing import NamedTuple

import pytest

from concord.rules.policy import Policy
from concord.versions.conflict import ConflictType
from concord.versions.row_version import RowVersion
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, Known, WrittenSite, made

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
HERE, THERE = {"id": 1, "token": "here"}, {"id": 1, "token": "there"}

LONDON, CAPETOWN, OSLO = made("london", 20), made("capetown", 10), made("oslo", 5)
LATER = made("capetown", 30)
LONDONS_DELETE, CAPETOWNS_DELETE = made("london", 20, deleted=True), made("capetown", 10, deleted=True)


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    return written_site(ITEM)


class Case(NamedTuple):
    """`known`: the version at the end, and the site it was received from."""

    present: RowVersion | None
    incoming: RowVersion
    verdict: str
    counted: str
    known: tuple[RowVersion, str | None]

    @property
    def row(self) -> dict[str, object] | None:
        """The row at the end: the one that its version came with."""
        version, _ = self.known
        if version.deleted:
            return None
        return THERE if version.dot == self.incoming.dot != (self.present and self.present.dot) else HERE


def united(version: RowVersion, *others: RowVersion) -> RowVersion:
    for other in others:
        version = version.united_with(other)
    return version


CASES = {
    "nobody has changed the row": Case(None, LONDON, "apply", "applied", (LONDON, "london")),
    "the incoming version includes the present one": Case(
        CAPETOWN, made("london", 20, CAPETOWN), "apply", "applied", (made("london", 20, CAPETOWN), "london")
    ),
    "the incoming version includes a present one that is later by the clock": Case(
        LATER, made("london", 20, LATER), "apply", "applied", (made("london", 20, LATER), "london")
    ),
    "the incoming version includes a delete": Case(
        CAPETOWNS_DELETE,
        made("london", 20, CAPETOWNS_DELETE),
        "apply",
        "applied",
        (made("london", 20, CAPETOWNS_DELETE), "london"),
    ),
    "the incoming delete includes the present version": Case(
        CAPETOWN,
        made("london", 20, CAPETOWN, deleted=True),
        "apply",
        "applied",
        (made("london", 20, CAPETOWN, deleted=True), "london"),
    ),
    "the present version includes the incoming one": Case(
        made("capetown", 10, LONDON), LONDON, "superseded", "superseded", (made("capetown", 10, LONDON), None)
    ),
    "the present delete includes the incoming version": Case(
        made("capetown", 10, LONDON, deleted=True),
        LONDON,
        "superseded",
        "superseded",
        (made("capetown", 10, LONDON, deleted=True), None),
    ),
    "both are the same version": Case(LONDON, LONDON, "converged", "converged", (LONDON, None)),
    "both are the same version, and the incoming one has seen more": Case(
        LONDON, united(LONDON, OSLO), "unite", "converged", (united(LONDON, OSLO), "london")
    ),
    "both are the same version, and the present one has seen more": Case(
        united(LONDON, OSLO), LONDON, "converged", "converged", (united(LONDON, OSLO), None)
    ),
    "both are the same version, and each has seen something else": Case(
        united(LONDON, OSLO),
        united(LONDON, CAPETOWN),
        "unite",
        "converged",
        (united(LONDON, OSLO, CAPETOWN), None),
    ),
    "the present version includes the incoming one, which has seen a third": Case(
        made("capetown", 10, LONDON),
        united(LONDON, OSLO),
        "unite",
        "superseded",
        (united(made("capetown", 10, LONDON), OSLO), None),
    ),
    "neither includes the other, and the incoming one is later": Case(
        CAPETOWN, LONDON, "source_wins", "applied", (united(LONDON, CAPETOWN), None)
    ),
    "neither includes the other, and the present one is later": Case(
        LATER, LONDON, "target_wins", "lost", (united(LATER, LONDON), None)
    ),
    "neither includes the other, and the incoming delete is later": Case(
        CAPETOWN, LONDONS_DELETE, "source_wins", "applied", (united(LONDONS_DELETE, CAPETOWN), None)
    ),
    "neither includes the other, and the present row is later than the incoming delete": Case(
        LATER, LONDONS_DELETE, "target_wins", "lost", (united(LATER, LONDONS_DELETE), None)
    ),
    "neither includes the other, and the incoming row is later than the present delete": Case(
        CAPETOWNS_DELETE, LONDON, "source_wins", "applied", (united(LONDON, CAPETOWNS_DELETE), None)
    ),
    "neither includes the other, and the present delete is later": Case(
        replace(LATER, deleted=True),
        LONDON,
        "target_wins",
        "lost",
        (united(replace(LATER, deleted=True), LONDON), None),
    ),
    "both sites deleted the row, the source later": Case(
        CAPETOWNS_DELETE,
        LONDONS_DELETE,
        "source_stays",
        "converged",
        (united(LONDONS_DELETE, CAPETOWNS_DELETE), None),
    ),
    "both sites deleted the row, the target later": Case(
        replace(LATER, deleted=True),
        LONDONS_DELETE,
        "target_stays",
        "converged",
        (united(replace(LATER, deleted=True), LONDONS_DELETE), None),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_staged_row_is_judged_by_what_each_version_includes(target: WrittenSite, case: Case) -> None:
    """Rules 4 and 6."""
    target.keep(HERE, case.present)
    written = target.write(Change(THERE, case.incoming))
    assert written.verdict(1).verdict == case.verdict
    assert {name: count for name, count in written.counts.items() if name != "conflicts"} == {
        "acquired": 1,
        case.counted: 1,
    }
    assert target.row(1) == case.row
    assert target.known(1) == Known(case.known[0], case.known[1], None, agreed=False)
    lost = [each["loser_version"]["origin"] for each in target.conflicts()]
    in_conflict = case.verdict in ("source_wins", "target_wins")
    assert bool(lost) is in_conflict is (written.counts.get("conflicts") == 1)


@pytest.mark.parametrize("verdict", ["converged", "superseded"])
def test_a_row_that_brings_nothing_new_writes_nothing(target: WrittenSite, verdict: str) -> None:
    """Rule 12: no new row version in the table, and none in the shadow table."""
    present = LONDON if verdict == "converged" else made("capetown", 30, LONDON)
    target.keep(HERE, present, received_from="london")
    stored = target.site.stored
    assert target.write(Change(THERE, LONDON)).verdict(1).verdict == verdict
    assert target.site.written_since(stored) == {"concord.link_state", "concord.synchronization"}


def test_an_update_that_changes_no_value_writes_the_version_alone(target: WrittenSite) -> None:
    target.keep(HERE, CAPETOWN)
    stored = target.site.stored
    target.write(Change(HERE, made("london", 20, CAPETOWN)))
    assert target.site.written_since(stored) == {
        'concord."public.item"',
        "concord.link_state",
        "concord.synchronization",
    }


#: London is the source of the synchronization.
PLACES = {"london": 0, "capetown": -1}
MUTUAL = {"london#1": (50, 5), "london#2": (50, 5), "london#10": (50, 5), "capetown#1": (50, 5)}


@pytest.mark.parametrize(
    ("incoming", "present", "priorities", "applies"),
    [
        (("london#1", 10, 1), ("capetown#1", 20, 0), {}, True),
        (("london#1", 20, 0), ("capetown#1", 10, 1), {}, False),
        (("london#1", 20, 0), ("capetown#1", 10, 0), {"capetown": 9}, True),
        (("london#1", 10, 0), ("capetown#1", 20, 0), {"london": 9}, False),
        (("london#1", 10, 0), ("capetown#1", 10, 0), {"capetown": 2, "london": 1}, False),
        (("capetown#1", 10, 0), ("london#1", 10, 0), {"capetown": 2, "london": 1}, True),
        (("london#1", 10, 0), ("capetown#1", 10, 0), {}, True),
        (("capetown#1", 10, 0), ("london#1", 10, 0), {}, False),
        (("london#10", 10, 0), ("london#2", 10, 0), {}, True),
        (("london#2", 10, 0), ("london#10", 10, 0), {}, False),
    ],
    ids=[
        *("derived before time", "derived before time, mirrored"),
        *("time before priority", "time before priority, mirrored"),
        *("priority before name", "priority before name, mirrored"),
        *("name", "name, mirrored", "incarnation as a number", "incarnation as a number, mirrored"),
    ],
)
def test_two_versions_that_include_each_other_are_settled_by_the_total_order(
    target: WrittenSite,
    incoming: tuple[str, int, int],
    present: tuple[str, int, int],
    priorities: dict[str, int],
    applies: bool,
) -> None:
    """Rule 4: whatever the resolver says."""
    target = target.configured(
        job={"priorities": priorities},
        policy=Policy(resolvers=("target_wins" if applies else "source_wins",), places=PLACES),
    )
    ours, theirs = RowVersion(*present, MUTUAL), RowVersion(*incoming, MUTUAL)
    target.keep(HERE, ours)
    written = target.write(Change(THERE, theirs))
    assert written.counts == {"acquired": 1, "applied" if applies else "superseded": 1}
    assert target.row(1) == (THERE if applies else HERE)
    assert target.conflicts() == []


def test_the_greater_of_two_that_include_each_other_learns_what_the_lesser_has_seen(
    target: WrittenSite,
) -> None:
    """Rule 6: the version at the end is not the one that came in, and is announced to the source as well."""
    mutual = {"london#1": (20, 0), "capetown#1": (20, 0)}
    ours, theirs = RowVersion("capetown#1", 20, 0, mutual), RowVersion("london#1", 10, 0, mutual)
    target.keep(HERE, ours, received_from="london")
    assert target.write(Change(THERE, united(theirs, OSLO))).verdict(1).verdict == "unite"
    assert target.known(1) == Known(united(ours, OSLO), None, None, agreed=False)


@pytest.mark.parametrize("derived", [(0, 1), (1, 2)])
def test_a_version_that_was_derived_from_another_one_of_the_same_time_is_another_version(
    target: WrittenSite, derived: tuple[int, int]
) -> None:
    """Rule 5: a repair bears the origin and the time of the row that it repairs."""
    first, second = (made("capetown", 10, derived=each) for each in derived)
    target.keep(HERE, first)
    assert target.write(Change(THERE, second)).counts == {"acquired": 1, "applied": 1}
    assert target.write(Change(HERE, first)).counts == {"acquired": 1, "superseded": 1}
    assert target.row(1) == THERE


def test_the_same_content_written_at_both_sites_is_no_conflict(target: WrittenSite) -> None:
    target.keep(THERE, LATER)
    written = target.write(Change(THERE, LONDON))
    assert written.verdict(1).verdict == "target_stays"
    assert written.counts == {"acquired": 1, "converged": 1}
    assert target.known(1) == Known(united(LATER, LONDON), None, None, agreed=False)
    assert target.conflicts() == []


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [("here", None, False), (None, "here", False), (None, None, True)],
)
def test_a_null_is_the_same_as_a_null_alone(
    target: WrittenSite, ours: str | None, theirs: str | None, same: bool
) -> None:
    target.keep({"id": 1, "token": ours}, CAPETOWN)
    written = target.write(Change({"id": 1, "token": theirs}, LONDON))
    assert written.verdict(1).verdict == ("source_stays" if same else "source_wins")


def test_a_row_that_the_target_inserted_without_a_version_is_a_conflict_with_an_insert(
    target: WrittenSite,
) -> None:
    """Rule 8: the empty vector is included in every other, and yet two rows were inserted."""
    target.keep(HERE)
    written = target.write(Change(THERE, made("london", 20, born=True)))
    assert written.verdict(1).verdict == "source_wins"
    (conflict,) = target.conflicts()
    assert (conflict["type"], conflict["loser_site"], conflict["loser_row"]["token"]) == (
        *("insert_insert", "capetown", "here"),
    )
    assert conflict["loser_version"] == {
        "origin": "",
        "changed_at": 0,
        "derived": 0,
        "vector": {},
        "deleted": False,
    }


def test_an_insert_over_the_same_row_without_a_version_applies(target: WrittenSite) -> None:
    target.keep(THERE)
    assert target.write(Change(THERE, made("london", 20, born=True))).counts == {"acquired": 1, "applied": 1}
    assert target.conflicts() == []


@pytest.mark.parametrize("born", [True, False])
def test_an_update_that_finds_neither_row_nor_tombstone_is_told_apart_from_an_insert(
    target: WrittenSite, born: bool
) -> None:
    """T10: the row was deleted behind capture's back."""
    written = target.write(Change(THERE, made("london", 20, born=born)))
    assert written.counts == {"acquired": 1, "applied": 1, **({} if born else {"inserted_for_update": 1})}
    assert written.report.keys_inserted == (() if born else ("1",))
    assert target.row(1) == THERE


def test_an_update_of_a_known_version_without_a_row_is_told_apart_as_well(target: WrittenSite) -> None:
    target.keep(HERE, CAPETOWN)
    target.site.as_applier("SET LOCAL concord.applying = 'on'", "DELETE FROM public.item")
    written = target.write(Change(THERE, made("london", 20, CAPETOWN)))
    assert written.counts == {"acquired": 1, "applied": 1, "inserted_for_update": 1}


def test_an_update_that_meets_a_tombstone_is_no_insert_for_an_update(target: WrittenSite) -> None:
    target.keep(HERE, CAPETOWNS_DELETE)
    assert target.write(Change(THERE, made("london", 20, CAPETOWNS_DELETE))).counts == {
        "acquired": 1,
        "applied": 1,
    }


def test_a_repair_inserts_a_missing_row_without_saying_so(target: WrittenSite) -> None:
    """A person has seen that the row is missing."""
    assert target.write(Change(THERE, LONDON), session=False).counts == {"acquired": 1, "applied": 1}


@pytest.mark.parametrize("at", [19, 20, 21])
def test_a_later_version_takes_an_agreed_one_for_absent(target: WrittenSite, at: int) -> None:
    """Rule 10: every site had it, so only one that has forgotten it makes a version without having seen it."""
    target.keep(HERE, made("capetown", 20), agreed=True)
    written = target.write(Change(THERE, made("london", at)))
    assert (written.verdict(1).verdict == "apply") is (at > 20)
    assert (target.conflicts() == []) is (at > 20)
    assert target.known(1) is not None
    assert not target.known(1).agreed  # type: ignore[union-attr]


def test_an_agreed_version_that_has_seen_the_incoming_one_supersedes_it(target: WrittenSite) -> None:
    late = made("london", 30)
    target.keep(HERE, made("capetown", 20, late), agreed=True)
    assert target.write(Change(THERE, late)).counts == {"acquired": 1, "superseded": 1}


def test_a_placeholder_on_its_way_is_nobodys_change(target: WrittenSite) -> None:
    """A key that a link has only locked at the source is no row there."""
    placeholder = RowVersion("", 0, 0, {}, deleted=True)
    target.keep(HERE, CAPETOWN)
    assert target.write(Change(THERE, placeholder)).counts == {"acquired": 1, "superseded": 1}
    assert target.row(1) == HERE


def test_a_placeholder_on_its_way_is_no_news_where_nobody_knows_the_key_either(target: WrittenSite) -> None:
    placeholder = RowVersion("", 0, 0, {}, deleted=True)
    assert target.write(Change(THERE, placeholder)).counts == {"acquired": 1, "superseded": 1}
    assert target.known(1) is None


def test_a_placeholder_at_the_target_gives_way_to_every_version(target: WrittenSite) -> None:
    target.keep(HERE, RowVersion("", 0, 0, {}, deleted=True))
    version = made("london", 20, born=True)
    assert target.write(Change(THERE, version)).counts == {"acquired": 1, "applied": 1}
    assert target.known(1) == Known(version, "london", None, agreed=False)


def test_a_row_once_inserted_stays_an_insert_for_those_that_have_not_heard_of_it(target: WrittenSite) -> None:
    """`born` is never lost, and a version that the source does not know as inserted is announced again."""
    target.keep(HERE, made("capetown", 10, born=True))
    update = made("london", 20, made("capetown", 10))
    target.write(Change(THERE, update))
    assert target.known(1) == Known(replace(update, born=True), None, None, agreed=False)


def test_the_type_of_a_conflict_has_its_own_chain(target: WrittenSite) -> None:
    target = target.configured(
        policy=Policy(by_type={ConflictType.UPDATE_UPDATE: ("target_wins",)}, places=PLACES)
    )
    target.keep(HERE, CAPETOWN)
    target.keep({"id": 2, "token": "here"}, CAPETOWN)
    written = target.write(Change(THERE, LONDON), Change({"id": 2}, LONDONS_DELETE))
    assert (written.verdict(1).verdict, written.verdict(2).verdict) == ("target_wins", "source_wins")
    assert written.verdict(1).resolver == "target_wins"
    assert written.verdict(2).resolver == "latest_timestamp"


def test_every_staged_row_has_a_verdict_of_its_own(target: WrittenSite) -> None:
    present = {1: None, 2: LATER, 3: CAPETOWN, 4: LONDON, 5: made("capetown", 30, LONDON)}
    for key, version in present.items():
        target.keep({"id": key, "token": "here"}, version)
    written = target.write(*(Change({"id": key, "token": "there"}, LONDON) for key in present))
    assert {key: written.verdict(key).verdict for key in present} == {
        1: "apply",
        2: "target_wins",
        3: "source_wins",
        4: "converged",
        5: "superseded",
    }
    assert written.report.adds_up
    assert target.site.rows("SELECT token FROM item ORDER BY id") == [
        ("there",),
        ("here",),
        ("there",),
        ("here",),
        ("here",),
    ]
