"""Another policy's decisions: the same pure rule over the ledger's entries, in either orientation."""

from dataclasses import replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from concord.jobs.ledger import Entry
from concord.jobs.what_if import Judged, Judgement, WhatIf
from concord.rules.policy import Chains, Policy
from concord.rules.resolver import Contender
from concord.tables.manipulation import Cut, Manipulation, Rename, Split
from concord.versions.conflict import conflict_type
from concord.versions.row_version import RowVersion
from tests.repository.records import NOON
from tests.versions.any_version import PRIORITIES, versions

CHAINS = [
    ("latest_timestamp",),
    ("earliest_timestamp",),
    ("source_wins",),
    ("site_priority", "earliest_timestamp"),
    ("delete_wins",),
    ("update_wins", "minimum(price)"),
    ("maximum(price)",),
]
PLACES = {"london": 0, "capetown": -1, "oslo": -1}
PRICES = st.sampled_from(["1", "2.50", "10", None])
chains = st.sampled_from(CHAINS)


def bound(resolvers: tuple[str, ...]) -> Chains:
    return Policy(resolvers=resolvers, places=PLACES).bound(PRIORITIES)


def asking(resolvers: tuple[str, ...], manipulation: Manipulation | None = None) -> WhatIf:
    return WhatIf(bound(resolvers), {"capetown": manipulation or Manipulation()})


def stored(version: RowVersion) -> dict[str, Any]:
    vector = {origin: list(dot) for origin, dot in version.vector.items()}
    return dict(zip(("origin", "changed_at", "derived"), version.dot, strict=True)) | {
        "vector": vector,
        "deleted": version.deleted,
    }


def contender(version: RowVersion, price: str | None) -> Contender:
    return Contender(version, None if version.deleted else {"id": "7", "price": price})


def logged(one: Contender, other: Contender, resolvers: tuple[str, ...]) -> Entry:
    """A link's write when `one` comes in and `other` is present."""
    decision = bound(resolvers).decide(one, other)
    won, lost = (one, other) if decision.source_wins else (other, one)
    return Entry(
        id="0f" * 32,
        synchronization="london_capetown",
        link="london_capetown/forward",
        transmission="t",
        table_name="public.book",
        key=["7"],
        conflict_type=conflict_type(one.version, other.version).value,
        resolver=decision.resolver,
        reason=decision.reason,
        winner_site=won.version.site,
        loser_site=lost.version.site,
        winner_version=stored(won.version),
        loser_version=stored(lost.version),
        winner_row=won.row,
        loser_row=lost.row,
        withheld={},
        decided_at=NOON,
        site="capetown",
    )


@st.composite
def concurrent(draw: st.DrawFn) -> tuple[Contender, Contender]:
    """Two versions of different sites of which neither includes the other."""
    one, other = draw(versions()), draw(versions())
    assume(not one.includes(other) and not other.includes(one) and one.site != other.site)
    born = draw(st.booleans())
    sides = (contender(replace(each, born=born), draw(PRICES)) for each in (one, other))
    ours, theirs = sides
    return ours, theirs


@given(concurrent(), chains)
def test_under_the_policy_that_decided_nothing_would_differ(
    sides: tuple[Contender, Contender], resolvers: tuple[str, ...]
) -> None:
    entry = logged(*sides, resolvers)
    assert asking(resolvers).judge(entry) == Judged(
        entry, Judgement.SAME, entry.winner_site, entry.resolver, entry.reason
    )


@given(concurrent(), chains, chains)
def test_under_another_policy_that_side_wins_which_it_would_have_let_win_then(
    sides: tuple[Contender, Contender], then: tuple[str, ...], now: tuple[str, ...]
) -> None:
    entry, wanted = logged(*sides, then), logged(*sides, now)
    judged = asking(now).judge(entry)
    assert (judged.would_win, judged.resolver, judged.reason) == (
        wanted.winner_site,
        wanted.resolver,
        wanted.reason,
    )
    alike = entry.winner_row == entry.loser_row
    other = Judgement.OTHER_SIDE if alike else Judgement.ANOTHER_ROW
    assert judged.judgement is (Judgement.SAME if wanted.winner_site == entry.winner_site else other)


LONDON = RowVersion("london#1", 5, 0, {"london#1": (5, 0)})
CAPETOWN = RowVersion("capetown#1", 6, 0, {"capetown#1": (6, 0)})


def an_entry(**changed: Any) -> Entry:
    entry = logged(contender(LONDON, "3"), contender(CAPETOWN, "2"), ("latest_timestamp",))
    return replace(entry, **changed)


def test_rows_are_read_in_the_columns_of_the_site_that_decided() -> None:
    renamed = Manipulation(
        operations=(
            Rename(canonical=("price",), own=("amount",)),
            Split(canonical=("iban",), own=("bank", "account"), cut=Cut(parts=2, lengths=(4, 6))),
        )
    )
    own = {"id": "7", "bank": "BANK", "account": "123456"}
    entry = an_entry(winner_row={**own, "amount": "2"}, loser_row={**own, "amount": "3"})
    judged = asking(("maximum(price)",), renamed).judge(entry)
    assert (judged.judgement, judged.would_win) == (Judgement.ANOTHER_ROW, "london")
    dropped = replace(
        entry,
        withheld={"columns": {"bank": "dropped"}},
        winner_row={"id": "7", "account": "x", "amount": "2"},
    )
    assert asking(("maximum(price)",), renamed).judge(dropped).would_win == "london"


def test_what_cannot_be_told_is_said() -> None:
    private = an_entry(withheld={"columns": {"price": "hashed"}})
    assert asking(("maximum(price)",)).judge(private).reason == "a column that decides is private"
    assert asking(("earliest_timestamp",)).judge(private).judgement is Judgement.ANOTHER_ROW
    unique = an_entry(conflict_type="uniqueness")
    assert asking(("earliest_timestamp",)).judge(unique).reason == "uniqueness is decided by no policy"
    repaired = an_entry(resolver="repair")
    assert (
        asking(("earliest_timestamp",)).judge(repaired).reason == "it was decided by repair, not by a policy"
    )
    made = an_entry(winner_version={**stored(CAPETOWN), "vector": {"capetown#1": [6, 0], "london#1": [5, 0]}})
    assert asking(("earliest_timestamp",)).judge(made).judgement is Judgement.UNKNOWN
    assert asking(("average(price)",)).judge(an_entry()).reason == "the other policy may make a new row"


def test_an_entry_that_does_not_hold_what_is_asked_is_told_apart_and_stops_nothing() -> None:
    asked, renamed = (
        asking(("maximum(price)",)),
        Manipulation(operations=(Rename(canonical=("price",), own=("amount",)),)),
    )
    for lost in ({"winner_version": {}}, {"loser_version": {}}, {"winner_version": {"origin": "london#1"}}):
        entry = an_entry(**lost)
        assert asked.judge(entry) == Judged(entry, Judgement.UNKNOWN, reason="a version of it was not kept")
    assert asked.judge(an_entry(site="oslo")).reason == "its site has left the configuration"
    assert asking(("maximum(price)",), renamed).judge(an_entry()).reason == "its table had other columns then"
    assert asked.judge(an_entry(loser_row={"id": "7"})).reason == "its table had other columns then"
    assert "was not kept" in str(an_entry(winner_version={}).refusal)
