"""Which of a child and its deleted parent gives way: a table, the same wherever the two meet."""

import pytest

from concord.rules.foreign_key_rule import Child, OnDelete, Parent, Remedy, remedy

PARENT = ("parent",)


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        (Child(OnDelete.NO_ACTION, PARENT, PARENT), Remedy.RESTORE_PARENT),
        (Child(OnDelete.RESTRICT), Remedy.RESTORE_PARENT),
        (Child(OnDelete.SET_DEFAULT, PARENT, PARENT), Remedy.RESTORE_PARENT),
        (Child(OnDelete.CASCADE, PARENT, PARENT), Remedy.DELETE_CHILD),
        (Child(OnDelete.SET_NULL, PARENT, PARENT), Remedy.CLEAR_CHILD),
        (Child(OnDelete.SET_NULL), Remedy.RESTORE_PARENT),
    ],
)
def test_what_is_declared_is_done_and_otherwise_the_delete_loses(child: Child, expected: Remedy) -> None:
    assert remedy(child, Parent.GONE) is expected


@pytest.mark.parametrize("on_delete", OnDelete)
def test_a_child_that_was_brought_back_or_is_not_ours_keeps_its_parent(on_delete: OnDelete) -> None:
    for child in (Child(on_delete, ("parent",), restored=True), Child(on_delete, ("parent",), ours=False)):
        assert remedy(child, Parent.GONE) is Remedy.RESTORE_PARENT


@pytest.mark.parametrize("on_delete", OnDelete)
def test_a_parent_that_cannot_come_back_takes_the_reference_along_or_the_child(on_delete: OnDelete) -> None:
    gives_up = remedy(Child(on_delete, (), ("parent",), restored=True), Parent.LOST)
    assert gives_up is (Remedy.DELETE_CHILD if on_delete is OnDelete.CASCADE else Remedy.CLEAR_CHILD)
    assert remedy(Child(on_delete), Parent.LOST) is Remedy.DELETE_CHILD
    assert remedy(Child(on_delete, ours=False), Parent.LOST) is Remedy.REFUSE


@pytest.mark.parametrize("on_delete", OnDelete)
def test_without_a_delete_nothing_cascades(on_delete: OnDelete) -> None:
    """A child waits with its parent; a parent that is merely missing is fetched."""
    for child in (Child(on_delete, PARENT, PARENT), Child(on_delete), Child(on_delete, restored=True)):
        assert remedy(child, Parent.WAITS) is Remedy.REFUSE
        assert remedy(child, Parent.MISSING) is Remedy.RESTORE_PARENT


@pytest.mark.parametrize("on_delete", OnDelete)
def test_a_child_follows_a_parent_that_moved_whatever_is_declared(on_delete: OnDelete) -> None:
    """One outside of the replication set keeps the parent where it was. One that no link may change waits with it."""
    for child in (Child(on_delete, PARENT, PARENT), Child(on_delete), Child(on_delete, restored=True)):
        assert remedy(child, Parent.MOVED) is Remedy.FOLLOW
    assert remedy(Child(on_delete, ours=False), Parent.MOVED) is Remedy.REFUSE
    outside = Child(on_delete, ours=False, shared=False)
    assert remedy(outside, Parent.MOVED) is Remedy.RESTORE_PARENT


@pytest.mark.parametrize("on_delete", OnDelete)
def test_a_child_that_no_update_lets_follow_gives_way(on_delete: OnDelete) -> None:
    assert remedy(Child(on_delete, follows=False), Parent.MOVED) is Remedy.DELETE_CHILD
    outside = Child(on_delete, follows=False, ours=False, shared=False)
    assert remedy(outside, Parent.MOVED) is Remedy.RESTORE_PARENT
