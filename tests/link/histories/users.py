"""Users of one site, who each edit the rows of one history."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.given.site import APPLICATION, Site
from tests.link.histories.batch_plan import WIDTH, Edit
from tests.link.histories.visits import Visits

_PUT = (
    "INSERT INTO item VALUES (%(key)s, %(token)s, md5(%(token)s))"
    " ON CONFLICT (id) DO UPDATE SET token = excluded.token, note = excluded.note"
)

#: The text that any other site may write there as well, to the last letter.
_ALIKE = (
    "INSERT INTO item VALUES (%(key)s, 'alike ' || %(key)s, md5('alike ' || %(key)s))"
    " ON CONFLICT (id) DO UPDATE SET token = excluded.token, note = excluded.note"
)

_DELETE = "DELETE FROM item WHERE id = %(key)s"

_REKEY = (
    "UPDATE item SET id = %(other)s, token = %(token)s, note = md5(%(token)s) WHERE id = %(key)s"
    " AND NOT EXISTS (SELECT 1 FROM item WHERE id = %(other)s)"
)

_FREE = (
    "(SELECT min(g) FROM generate_series(%(base)s, %(base)s + 3) g WHERE g NOT IN (SELECT place FROM seat))"
)

#: Unique places swapped or passed on, children moved, a parent taken away and made anew: each in one transaction.
_SEATS = {
    "swap": (
        "UPDATE seat SET place = -1 - place WHERE id IN (%(key)s, %(other)s)",
        "UPDATE seat s SET place = -1 - o.place FROM seat o"
        " WHERE (s.id, o.id) IN ((%(key)s, %(other)s), (%(other)s, %(key)s))",
    ),
    "pass_on": (
        "UPDATE seat SET place = -1 - place WHERE id = %(key)s",
        f"UPDATE seat SET place = {_FREE} WHERE id = %(other)s",
        f"UPDATE seat SET place = {_FREE} WHERE id = %(key)s",
    ),
    "move": ("UPDATE seat SET plane = %(base)s + 1 - (plane - %(base)s) WHERE id = %(key)s",),
    "rebuild": (
        "UPDATE seat SET plane = %(base)s WHERE plane = %(base)s + 1",
        "DELETE FROM plane WHERE id = %(base)s + 1",
        "INSERT INTO plane VALUES (%(base)s + 1, %(token)s)",
    ),
}

_ITEMS = {"put": (_PUT,), "alike": (_ALIKE,), "delete": (_DELETE,), "rekey": (_REKEY,)}

_STATEMENTS = _ITEMS | _SEATS

#: By verb: is the visit marked as deleted?
_VISITS = {"visit": False, "forgo": True}


@dataclass
class Users:
    """The people of one site: one session for most, and one for each transaction that stays open."""

    site: Site
    visits: Visits
    session: psycopg.Connection[Any] = field(init=False)
    open: list[psycopg.Connection[Any]] = field(default_factory=list)
    locked: set[tuple[bool, int]] = field(default_factory=set)  #: is it a visit, and its key
    edits: int = 0

    def __post_init__(self) -> None:
        self.session = self.site.log_in(APPLICATION, autocommit=False)

    def edit(self, history: int, edit: Edit) -> None:
        """One transaction; a row that an open one holds is left alone, where a user would wait."""
        session = self.site.log_in(APPLICATION, autocommit=False) if edit.late else self.session
        for verb, *places in edit.does:
            keys = {(verb in _VISITS, history * WIDTH + int(str(place))) for place in places}
            if verb in _SEATS or not keys & self.locked:
                self._run(session, str(verb), history, [int(str(place)) for place in places])
                self.locked |= keys if edit.late else set()
        if edit.late:
            self.open.append(session)
        else:
            session.commit()

    def _run(self, session: psycopg.Connection[Any], verb: str, history: int, places: Sequence[int]) -> None:
        self.edits += 1
        base = history * WIDTH
        given: dict[str, Any] = {
            "key": base + places[0],
            "other": base + places[-1],
            "base": base,
            "token": f"{self.site.name} {self.edits}",
        }
        if verb in _VISITS:
            self.visits.write(session, given["key"], given["token"], gone=_VISITS[verb])
            return
        for statement in _STATEMENTS[verb]:
            session.execute(statement, given)

    def commit(self) -> None:
        for session in self.open:
            session.commit()
            session.close()
        self.open, self.locked = [], set()

    def leave(self) -> None:
        self.commit()
        self.session.close()
