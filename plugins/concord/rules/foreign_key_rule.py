"""A child without its parent: which of the two gives way? Alike at every site, in whatever order they arrive (F35,
F36, F46)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OnDelete(StrEnum):
    """The rule that the table's owner declared, by the catalogue's letters."""

    NO_ACTION = "a"
    RESTRICT = "r"
    CASCADE = "c"
    SET_NULL = "n"
    SET_DEFAULT = "d"


class Parent(StrEnum):
    """The fate of the row that a child refers to."""

    GONE = "gone"  #: a user deleted it, or left nothing in what the child refers to
    MOVED = "moved"  #: it is there, and has other values now in what the child refers to
    LOST = "lost"  #: it gave way to another row for a unique value, and cannot come back
    MISSING = (
        "missing"  #: nobody deleted it, and yet it is not there: it was lost behind capture, or never arrived
    )
    WAITS = "waits"  #: a version of it waits here, refused by the site or held for a person


class Remedy(StrEnum):
    """The repair that makes the reference true again."""

    DELETE_CHILD = "delete_child"
    CLEAR_CHILD = "clear_child"  #: the columns that refer become NULL
    FOLLOW = "follow"  #: the columns that refer get the parent's values
    RESTORE_PARENT = "restore_parent"
    REFUSE = "refuse"  #: nothing that a link may do


@dataclass(frozen=True, slots=True)
class Child:
    """The repairs that a reference and its rows allow."""

    on_delete: OnDelete
    clears: tuple[str, ...] = ()  #: what SET NULL sets; empty where it may not
    gives_up: tuple[str, ...] = ()  #: the fewest columns that end the reference; empty where none may be NULL
    ours: bool = True  #: the child may be changed by this link: it is of the replication set, wholly shared
    restored: bool = False  #: brought back in this very transaction, because others refer to it
    follows: bool = True  #: an update can set the columns that refer
    shared: bool = True  #: of the replication set


def remedy(child: Child, parent: Parent) -> Remedy:
    """A declared act is done where the database would have done it, had it seen the child: CASCADE and SET NULL.

    A child of a parent that moved follows it, whatever is declared: its row is still the one that was meant. To give
    the parent its value back would orphan the children that have followed already, at the other site. A child that
    the link may not change waits with it.

    Otherwise the delete of the parent loses: it would have been refused. A parent that gave way to another row for
    a unique value cannot come back. So its child gives up the reference, or else its place. A child that was
    brought back keeps what it refers to: then the whole cascade would have been refused. Without a delete nothing
    cascades: a child waits with its parent, and a parent that is merely missing is fetched.
    """
    if parent is Parent.LOST:
        return _without_parent(child)
    if parent is Parent.WAITS:
        return Remedy.REFUSE
    if parent is Parent.MOVED and child.ours:
        return Remedy.FOLLOW if child.follows else _without_parent(child)
    if parent is Parent.MOVED and child.shared:
        return Remedy.REFUSE
    if parent in (Parent.MISSING, Parent.MOVED) or child.restored or not child.ours:
        return Remedy.RESTORE_PARENT
    return _declared(child)


def _declared(child: Child) -> Remedy:
    if child.on_delete is OnDelete.CASCADE:
        return Remedy.DELETE_CHILD
    if child.on_delete is OnDelete.SET_NULL and child.clears:
        return Remedy.CLEAR_CHILD
    return Remedy.RESTORE_PARENT


def _without_parent(child: Child) -> Remedy:
    if not child.ours:
        return Remedy.REFUSE
    goes = child.on_delete is OnDelete.CASCADE or not child.gives_up
    return Remedy.DELETE_CHILD if goes else Remedy.CLEAR_CHILD
