"""An initialization's decision for one key, against a model of two sites: rule 8, F32, F33."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.rules.initialization_rule import Side, Verdict, Way, decide, ever
from concord.rules.policy import Policy
from concord.versions.row_version import ABSENT, RowVersion, unite


@dataclass
class Site:
    """One key at one site."""

    origin: str
    content: str | None = None
    version: RowVersion = ABSENT
    unsent: bool = False

    def edit(self, content: str | None, at: int) -> None:
        """As the trigger stamps it. Deleting what is not there is no edit."""
        if content is None and self.content is None:
            return
        born = self.version.born or self.content is None
        newest = max((entry[0] for entry in self.version.vector.values()), default=0)
        at = max(at, newest + 1)
        vector = unite(self.version.vector, {self.origin: (at, 0)})
        self.version = RowVersion(self.origin, at, 0, vector, content is None, born)
        self.content, self.unsent = content, True

    @property
    def side(self) -> Side:
        return Side(self.version, self.content is not None, self.unsent)


@dataclass
class Meeting:
    """London, whose rows hold, and Cape Town; `logged` is what the conflict log holds."""

    london: Site = field(default_factory=lambda: Site("london#1"))
    capetown: Site = field(default_factory=lambda: Site("capetown#1"))
    stale: bool = False
    logged: list[str | None] = field(default_factory=list)

    def initialize(self) -> None:
        """Both ways, London's first, as an initialization goes."""
        for source, target in ((self.london, self.capetown), (self.capetown, self.london)):
            way = Way(
                source.origin,
                fresh=not self.stale,
                named=source is self.london,
                source_stale=self.stale and source is self.capetown,
                target_stale=self.stale and target is self.capetown,
            )
            same = source.content == target.content
            verdict = decide(source.side, target.side, way, Policy().bound({}), same=same)
            if verdict is not None:
                self._write(verdict, source, target)

    def _write(self, verdict: Verdict, source: Site, target: Site) -> None:
        """As the guarded write does: the vector becomes the union, the loser is logged."""
        if verdict.verdict == "insert":
            target.content = source.content
            return
        assert verdict.version is not None
        if verdict.verdict in ("target_wins", "unite"):
            if verdict.verdict == "target_wins":
                self.logged.append(source.content)
            target.version = target.version.united_with(verdict.version)
            return
        if verdict.verdict == "source_wins":
            self.logged.append(target.content)
        united = unite(verdict.version.vector, target.version.vector)
        target.version = replace(verdict.version, vector=united)
        target.content = source.content
        target.unsent = False


contents = st.none() | st.sampled_from("abc")
edits = st.none() | st.tuples(contents, st.integers(1, 9))


@given(contents, contents, edits, edits)
def test_a_merge_makes_both_sites_equal_and_loses_nothing_unlogged(
    london: str | None,
    capetown: str | None,
    at_london: tuple[str | None, int] | None,
    at_capetown: tuple[str | None, int] | None,
) -> None:
    met = Meeting()
    met.london.content, met.capetown.content = london, capetown
    for site, edit in ((met.london, at_london), (met.capetown, at_capetown)):
        if edit is not None:
            site.edit(*edit)
    before = {met.london.content, met.capetown.content}
    edited = [site for site in (met.london, met.capetown) if not site.version.is_absent]

    met.initialize()

    assert met.london.content == met.capetown.content
    assert before <= {met.london.content, None, *met.logged}, "the loser stands in the log"
    if not edited and london is not None:
        assert met.london.content == london, "the named site's row holds"
    if len(edited) == 1:
        assert met.london.content == edited[0].content, "an edit wins over a row that nobody has touched"
    written = list(met.logged)
    met.initialize()
    assert met.logged == written, "a second time finds nothing to do"


actions = st.lists(
    st.one_of(
        st.tuples(st.just("london"), contents),
        st.tuples(st.just("capetown"), contents),
        st.tuples(st.just("meet"), st.none()),
    ),
    max_size=8,
)


@given(contents, actions, st.booleans())
def test_a_stale_site_keeps_its_unsent_edits_and_resurrects_nothing(
    loaded: str | None, history: list[tuple[str, str | None]], purged: bool
) -> None:
    """Edits and meetings in any order; then London forgets its tombstone, and Cape Town is brought back."""
    met = Meeting()
    met.london.content = met.capetown.content = loaded
    edited_since = {"london": False, "capetown": False}
    for clock, (what, content) in enumerate(history, start=1):
        if what == "meet":
            newest = max(met.london, met.capetown, key=lambda site: site.version.changed_at)
            united = unite(met.london.version.vector, met.capetown.version.vector)
            held = newest.content, replace(newest.version, vector=united)
            for site in (met.london, met.capetown):
                (site.content, site.version), site.unsent = held, False
            edited_since = dict.fromkeys(edited_since, False)
        else:
            site = met.london if what == "london" else met.capetown
            edited_since[what] |= content is not None or site.content is not None
            site.edit(content, clock * 10)
    forgot = purged and met.london.content is None
    if forgot:
        met.london.version = ABSENT
    met.stale = True
    ours, theirs = met.london.content, met.capetown.content

    met.initialize()

    assert met.london.content == met.capetown.content
    if not edited_since["capetown"]:
        assert met.capetown.content == ours, "what was sent, the other site has seen"
    elif not edited_since["london"] or forgot:
        assert met.london.content == theirs, "an unsent edit lives"
    assert {ours, theirs} <= {met.london.content, None, *met.logged} or not all(edited_since.values())


def test_a_state_that_is_forced_over_a_version_has_seen_all_that_it_had_seen() -> None:
    """Also where the write would not unite the two: what a third site knows of the old version must give way."""
    present = RowVersion("oslo#1", 7, 0, {"oslo#1": (7, 0), "rome#1": (9, 0)})
    way = Way("london#1", fresh=False, named=True, target_stale=True)
    verdict = decide(
        Side(ABSENT, exists=False), Side(present, exists=True), way, Policy().bound({}), same=False
    )
    assert verdict is not None
    assert verdict.version is not None
    assert verdict.version.vector == {"oslo#1": (7, 1), "rome#1": (9, 0)}
    assert verdict.version.includes(present)


AGREED = RowVersion("oslo#1", 7, 0, {"oslo#1": (7, 0)})
NO_ROW, EQUAL_ROW = Side(ABSENT, exists=False), Side(ABSENT, exists=True)


@pytest.mark.parametrize(
    ("version", "present"),
    [(AGREED, NO_ROW), (AGREED, EQUAL_ROW), (replace(AGREED, deleted=True), NO_ROW)],
    ids=["of a row that is new", "of the same row", "of a delete"],
)
def test_an_agreed_version_stays_agreed_where_nobody_listens(version: RowVersion, present: Side) -> None:
    """Rule 10: a third site may not have agreed yet."""
    verdict = decide(
        Side(version, exists=not version.deleted, agreed=True),
        present,
        Way("london#1", fresh=True, named=True),
        Policy().bound({}),
        same=present.exists,
    )
    assert verdict == Verdict("insert", version)


@pytest.mark.parametrize(
    ("incoming", "present", "way"),
    [
        (Side(replace(AGREED, deleted=True), exists=False, agreed=True), NO_ROW, {"announced": True}),
        (Side(replace(AGREED, deleted=True), exists=False, left=True, agreed=True), NO_ROW, {}),
        (Side(AGREED, exists=True, agreed=True), NO_ROW, {"announced": True}),
        (Side(AGREED, exists=True, agreed=True), EQUAL_ROW, {"source_stale": True}),
    ],
    ids=[
        "of a delete where others listen",
        "of a row that has left the filter",
        "where others listen",
        "at a restored site",
    ],
)
def test_an_agreed_version_is_told_to_nobody_else(
    incoming: Side, present: Side, way: dict[str, bool]
) -> None:
    """Rule 10: others may have forgotten it."""
    asked = Way("london#1", fresh=False, named=True, **way)
    verdict = decide(incoming, present, asked, Policy().bound({}), same=present.exists)
    assert verdict is None or verdict == Verdict("apply", ever("london#1"))


@pytest.mark.parametrize("named", ["london#1", "rome#1"])
@pytest.mark.parametrize("content", [None, "theirs"], ids=["a deleted row", "a row"])
def test_an_agreed_version_decides_against_another_row_that_has_none(content: str | None, named: str) -> None:
    """Rule 10: else both sites would keep what they have, whichever of them is named."""
    version = replace(AGREED, deleted=content is None)
    ours, theirs = Side(ABSENT, exists=True), Side(version, exists=content is not None, agreed=True)
    there = Way("london#1", fresh=True, named=named == "london#1")
    back = Way("rome#1", fresh=True, named=named == "rome#1")
    assert decide(ours, theirs, there, Policy().bound({}), same=False) is None
    verdict = decide(theirs, ours, back, Policy().bound({}), same=False)
    assert verdict is not None
    assert (verdict.verdict, verdict.version) == ("source_wins", version)


def test_the_row_of_an_agreed_version_is_not_put_back_where_a_log_may_yet_tell_that_it_is_gone() -> None:
    way = Way("london#1", fresh=True, named=True, by_log=True)
    incoming = Side(AGREED, exists=True, agreed=True)
    assert decide(incoming, EQUAL_ROW, way, Policy().bound({}), same=True) is None
    assert decide(incoming, NO_ROW, way, Policy().bound({}), same=False) == Verdict("insert", AGREED)
