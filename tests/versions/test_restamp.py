"""A version from the future is renamed: for every other site it has seen, and is seen by, what it was before."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from concord.rules.resolver import total_order
from concord.versions.conflict import Outcome, classify
from concord.versions.restamp import Clock, accepted, ahead, restamped
from concord.versions.row_version import ABSENT, RowVersion, from_the_future, unite
from tests.versions.any_version import ORIGINS, PRIORITIES, versions

NOW, ALLOWED = 10, 2
HERE = Clock("london#1", NOW, NOW + ALLOWED, 0)
ORDER = total_order(PRIORITIES)
others = st.lists(versions(), max_size=4)


def from_2099(version: RowVersion, at: int) -> RowVersion:
    """As the site stamps it while its clock is wrong."""
    return replace(
        version, origin=HERE.origin, changed_at=at, vector={**version.vector, HERE.origin: (at, 0)}
    )


def known(version: RowVersion, held: list[RowVersion]) -> list[RowVersion]:
    """The versions that other sites can hold beside it: of its own site no more than it knows itself."""
    own = version.vector[HERE.origin][0]
    return [each for each in held if each.vector.get(HERE.origin, (0, 0))[0] < own]


def everything(held: list[RowVersion]) -> dict[str, tuple[int, int]]:
    united: dict[str, tuple[int, int]] = {}
    for each in held:
        united = unite(united, each.vector)
    return united


@given(versions(), st.integers(NOW + ALLOWED + 1, 100), others)
def test_the_new_version_stands_to_all_others_as_the_old_one_did(
    before: RowVersion, at: int, others: list[RowVersion]
) -> None:
    old = from_2099(before, at)
    held = known(old, others)
    assert ahead(old, HERE)
    assert not accepted(old, everything(held), HERE)
    new = restamped(old, everything(held), HERE)
    assert new.changed_at <= HERE.latest
    assert ahead(new, HERE) == {}
    assert new.includes(new)
    for each in held:
        assert new.includes(each) == old.includes(each)
        assert not each.includes(new)
        for exists in (False, True):
            assert classify(new, each, ORDER, row_exists=exists) is classify(
                old, each, ORDER, row_exists=exists
            )


@given(versions(), st.integers(NOW + ALLOWED + 1, 100), others, st.sampled_from(ORIGINS))
def test_what_another_site_has_accepted_stays(
    before: RowVersion, at: int, others: list[RowVersion], by: str
) -> None:
    old = from_2099(before, at)
    accepting = replace(old, origin=by, vector={**old.vector, by: (at, 0)})
    assert accepted(old, everything([*others, accepting]), HERE)


@given(
    versions(),
    st.integers(NOW + ALLOWED + 1, 100),
    others,
    st.integers(0, NOW),
    st.integers(0, NOW + ALLOWED),
)
def test_it_is_later_than_the_floor_and_than_all_that_anybody_has_seen_of_the_site(
    before: RowVersion, at: int, others: list[RowVersion], floor: int, earlier: int
) -> None:
    """Also than what the site stamped while its clock was a little ahead, which others have accepted."""
    old = from_2099(before, at)
    held = known(old, [*others, from_2099(before, earlier)])
    new = restamped(old, everything(held), replace(HERE, floor=floor))
    assert new.changed_at > floor
    assert all(new.changed_at > each.vector.get(HERE.origin, (0, 0))[0] for each in held)


@given(versions())
def test_a_version_of_now_is_left_alone(version: RowVersion) -> None:
    assume(all(stamp <= HERE.latest for stamp, _ in version.vector.values()))
    assert ahead(version, HERE) == {}


# Sites whose clocks are wrong for a while: one row, carried to and fro, with the product's own functions.

WRONG = 10_000
LINKS = {
    "pair": (("oslo", "lima"),),
    "chain": (("oslo", "lima"), ("lima", "cairo")),
    "ring": (("oslo", "lima"), ("lima", "cairo"), ("cairo", "oslo")),
}


@dataclass
class Site:
    """One site: its row, the version, what waits for each link, and its clock."""

    name: str
    row: str = "common"
    version: RowVersion = ABSENT
    seen: frozenset[str] = frozenset()  #: edits that it truly knows of
    ahead: int = 0
    waiting: dict[str, tuple[RowVersion, str]] = field(default_factory=dict)  #: by source

    def clock(self, now: int) -> Clock:
        return Clock(f"{self.name}#1", now + self.ahead, now + self.ahead + ALLOWED, 0)


@dataclass
class Life:
    """The sites, what was lost and logged, and which edit each edit's own reader has replaced."""

    links: tuple[tuple[str, str], ...]
    now: int = NOW
    sites: dict[str, Site] = field(default_factory=dict)
    logged: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)
    edits: list[str] = field(default_factory=list)
    names: set[tuple[str, str, int]] = field(
        default_factory=set
    )  #: edit, and the origin and stamp it ever went by

    def edit(self, name: str) -> None:
        site = self.sites[name]
        self.now += 1
        newest = max((at for at, _ in site.version.vector.values()), default=0)
        at = max(self.now + site.ahead, newest + 1)
        self.replaced.add(site.row)
        site.row = f"{name} {len(self.edits)}"
        self.edits.append(site.row)
        origin = f"{name}#1"
        site.version = RowVersion(origin, at, 0, {**site.version.vector, origin: (at, 0)})
        site.seen |= {site.row}
        self.names.add((site.row, origin, at))

    def claimed(self, version: RowVersion) -> set[str]:
        """The edits of which a name is in the version's vector."""
        return {edit for edit, origin, at in self.names if version.vector.get(origin, (0, 0))[0] >= at}

    def carry(self, source: str, target: str) -> None:
        """The source's version, else what waits; a version from the future waits. Links wait for right clocks."""
        here, there = self.sites[target], self.sites[source]
        if here.ahead or there.ahead or there.version.is_absent:
            return
        kept = here.waiting.get(source)
        withdrawn = kept and kept[0].origin == f"{source}#1" and not there.version.includes(kept[0])
        if withdrawn:
            del here.waiting[source]
        if from_the_future(there.version, here.version, self.now, ALLOWED):
            here.waiting[source] = (there.version, there.row)
            return
        self._write(here, there.version, there.row)
        here.seen |= there.seen
        if source in here.waiting and here.version.includes(here.waiting[source][0]):
            del here.waiting[source]

    def believe(self, source: str, target: str) -> None:
        """Carry the version although it is from the future: the target's `max_clock_skew` is wide."""
        here, there = self.sites[target], self.sites[source]
        if not there.version.is_absent:
            self._write(here, there.version, there.row)
            here.seen |= there.seen

    def race(self, source: str, target: str) -> None:
        """No lease and no fence: a link carries the version between the look at the other sites and the new stamp."""
        site = self.sites[source]
        site.ahead = WRONG
        self.edit(source)
        site.ahead = 0
        known = self.looked(site)
        self.believe(source, target)
        self.stamp_anew(site, known)

    def _write(self, here: Site, incoming: RowVersion, row: str) -> None:
        outcome = classify(incoming, here.version, ORDER, row_exists=True, same_thing=row == here.row)
        wins = outcome is Outcome.APPLY
        if outcome is Outcome.CONFLICTED:
            wins = ORDER(incoming) > ORDER(here.version)
            self.logged.add(here.row if wins else row)
        united = unite(incoming.vector, here.version.vector)
        here.version = replace(incoming if wins else here.version, vector=united)
        here.row = row if wins else here.row

    def set_clocks_right(self) -> None:
        """And stamp anew, at each site that holds what nobody else has accepted."""
        for site in self.sites.values():
            site.ahead = 0
        for site in self.sites.values():
            self.stamp_anew(site, self.looked(site))

    def looked(self, site: Site) -> dict[str, tuple[int, int]]:
        """All that the other sites have seen of the row."""
        return everything([each.version for each in self.sites.values() if each is not site])

    def stamp_anew(self, site: Site, known: dict[str, tuple[int, int]]) -> None:
        """Edits whose name goes have the new one; where the old one is held elsewhere all the same, they have
        both."""
        clock = site.clock(self.now)
        if not ahead(site.version, clock) or accepted(site.version, known, clock):
            return
        site.version = restamped(site.version, known, clock)
        unnamed = site.seen - self.claimed(site.version)
        self.names |= {(edit, clock.origin, site.version.changed_at) for edit in unnamed}
        assert self.claimed(site.version) <= site.seen, "it claims an edit that the site has not seen"

    def settle(self) -> None:
        for _ in range(2 * len(self.sites)):
            for one, other in self.links:
                self.carry(one, other)
                self.carry(other, one)


def begun(topology: str) -> tuple[Life, list[str], list[tuple[str, str]]]:
    """A life, the names of its sites, and its links both ways."""
    life = Life(LINKS[topology])
    names = sorted({name for link in life.links for name in link})
    life.sites = {name: Site(name) for name in names}
    return life, names, [*life.links, *((other, one) for one, other in life.links)]


def lived(life: Life, names: list[str], both: list[tuple[str, str]], what: str, place: int) -> None:
    """One step."""
    name = names[place % len(names)]
    if what == "edit":
        life.edit(name)
    elif what == "carry":
        life.carry(*both[place % len(both)])
    elif what == "wrong":
        life.sites[name].ahead = WRONG
    else:
        life.set_clocks_right()


steps = st.lists(
    st.tuples(st.sampled_from(["edit", "edit", "carry", "wrong", "right"]), st.integers(0, 5)), max_size=30
)


@pytest.mark.parametrize("topology", LINKS)
@given(steps=steps)
def test_after_it_all_sites_converge_and_no_edit_is_lost_without_an_entry(
    topology: str, steps: list[tuple[str, int]]
) -> None:
    life, names, both = begun(topology)
    for what, place in steps:
        lived(life, names, both, what, place)
    life.set_clocks_right()
    life.settle()
    sites = list(life.sites.values())
    assert {site.row for site in sites} == {sites[0].row}
    assert {site.version.dot for site in sites} == {sites[0].version.dot}
    assert all(site.waiting == {} for site in sites)
    assert max(at for site in sites for at, _ in [*site.version.vector.values(), (0, 0)]) < WRONG
    assert set(life.edits) <= {sites[0].row, *life.replaced, *life.logged}


@pytest.mark.parametrize("topology", LINKS)
@given(steps=steps)
def test_no_version_claims_an_edit_that_its_site_has_not_seen(
    topology: str, steps: list[tuple[str, int]]
) -> None:
    """While links wait for the one that stamps anew."""
    life, names, both = begun(topology)
    for what, place in steps:
        lived(life, names, both, what, place)
        for site in life.sites.values():
            assert life.claimed(site.version) <= site.seen


racing = st.lists(
    st.tuples(st.sampled_from(["edit", "edit", "believe", "race", "stamp"]), st.integers(0, 5)), max_size=20
)


@pytest.mark.parametrize("topology", LINKS)
@given(steps=racing)
def test_even_after_a_race_a_new_stamp_claims_no_edit_that_its_site_has_not_seen(
    topology: str, steps: list[tuple[str, int]]
) -> None:
    life, names, both = begun(topology)
    for what, place in steps:
        link = both[place % len(both)]
        if what == "believe":
            life.believe(*link)
        elif what == "race":
            life.race(*link)
        elif what == "stamp":
            site = life.sites[names[place % len(names)]]
            life.stamp_anew(site, life.looked(site))
        else:
            lived(life, names, both, what, place)
