"""A link resumes where both ends agree that it was, table by table."""

from hypothesis import given
from hypothesis import strategies as st

from concord.versions.position import (
    HISTORY_LENGTH,
    LinkPosition,
    Session,
    remembered,
    resume,
    session_from_json,
    session_to_json,
)

TABLES = ("books", "shelves", "readers")
HERE, THERE = "london#1", "capetown#1"

texts = st.sampled_from(["1:1:", "5:9:6", "7:7:", "8:12:9,10"])
positions = st.builds(LinkPosition, texts, st.dictionaries(st.sampled_from(TABLES), texts))


def session(name: str, source: str = HERE, target: str = THERE) -> Session:
    return Session(name, source, target, 1, LinkPosition("1:1:"))


histories = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=7).map(
    lambda names: [session(n) for n in names]
)


@given(positions, texts, st.sets(st.sampled_from(TABLES)))
def test_only_the_tables_that_were_carried_move(position: LinkPosition, to: str, moved: set[str]) -> None:
    # Rule 1
    after = position.advanced(to, moved, TABLES)
    assert {table: after.of(table) for table in TABLES} == {
        table: to if table in moved else position.of(table) for table in TABLES
    }


@given(positions, texts)
def test_a_link_that_carried_every_table_has_one_position(position: LinkPosition, to: str) -> None:
    assert position.advanced(to, TABLES, TABLES) == LinkPosition(to)


@given(histories, histories)
def test_a_link_resumes_at_the_newest_session_that_both_ends_know(
    at_source: list[Session], at_target: list[Session]
) -> None:
    # F65
    common = [known for known in at_target if known in at_source]
    found = resume(at_source, at_target, HERE, THERE)
    assert (found.session if found else None) == (common[0] if common else None)


@given(histories, histories)
def test_nothing_is_left_out_unless_neither_end_knows_a_newer_session(
    at_source: list[Session], at_target: list[Session]
) -> None:
    # Rule 2
    found = resume(at_source, at_target, HERE, THERE)
    if found:
        assert found.at_newest == (at_source[0] == at_target[0])


def test_after_a_new_incarnation_of_either_end_nothing_is_left_out() -> None:
    history = [session("a")]
    for source, target in ((HERE, "capetown#2"), ("london#2", THERE)):
        found = resume(history, history, source, target)
        assert found is not None
        assert not found.at_newest


def test_the_same_session_remembered_twice_is_one() -> None:
    history = remembered(remembered([session("a")], session("b")), session("b"))
    assert [each.id for each in history] == ["b", "a"]


def test_the_oldest_sessions_are_forgotten() -> None:
    history: list[Session] = []
    for number in range(HISTORY_LENGTH + 3):
        history = remembered(history, session(str(number)))
    assert [each.id for each in history] == [str(number) for number in range(HISTORY_LENGTH + 2, 2, -1)]


@given(positions, st.integers(0, 2**62))
def test_a_session_survives_its_stored_form(position: LinkPosition, heartbeat: int) -> None:
    stored = Session("a", HERE, THERE, heartbeat, position)
    assert session_from_json(session_to_json(stored)) == stored


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


STORED = session_to_json(session("a"))


@given(
    st.one_of(
        ANY,
        st.dictionaries(st.sampled_from([*STORED]), ANY),
        st.dictionaries(st.sampled_from([*STORED]), ANY, max_size=1).map(lambda other: STORED | other),
        st.dictionaries(st.text(max_size=3), ANY).map(lambda other: STORED | {"differing": other}),
    )
)
def test_a_site_may_hold_anything_in_place_of_a_session(found: object) -> None:
    try:
        read = session_from_json(found)
    except ValueError:
        return
    assert isinstance(found, dict)
    assert session_to_json(read).items() <= found.items()
    assert all(isinstance(position, str) for position in read.position.differing.values())
