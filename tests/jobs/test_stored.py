"""An entry of the conflict log that another site made up is read like any other: what is none of it is left out."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from concord.databases.postgresql.facts.any_json import parse_json
from concord.jobs import stored
from concord.jobs.ledger import Entry, dot, kept
from concord.jobs.what_if import version_of
from concord.values.moment import LAST
from tests.given.any_json import either

VERSION = {
    "origin": "london#1",
    "changed_at": 20,
    "derived": 0,
    "vector": {"london#1": [20, 0]},
    "deleted": False,
}
USUAL: dict[str, object] = {
    "key": ["1"],
    "winner_version": VERSION,
    "loser_version": VERSION,
    "winner_row": {"id": "1", "token": "a"},
    "loser_row": None,
    "withheld": {"columns": {"token": "dropped"}, "key": ["stored"]},
    "overturned_version": VERSION,
}


def read(texts: dict[str, str]) -> Entry:
    plain: dict[str, Any] = dict.fromkeys(Entry.__dataclass_fields__, "")
    moments = {"decided_at": LAST, "overturned_at": None}
    return Entry.of({**plain, **moments, **{name: parse_json(text) for name, text in texts.items()}})


@given(st.fixed_dictionaries({name: either(value) for name, value in USUAL.items()}))
def test_whatever_a_site_has_stored_is_an_entry_that_people_are_shown(texts: dict[str, str]) -> None:
    entry = read(texts)
    assert all(part is None or isinstance(part, str) for part in entry.key)
    assert entry.refusal is None or isinstance(entry.refusal, str)
    for version in (entry.winner_version, entry.loser_version):
        if kept(version):
            assert version_of(version).dot == dot(version)
    for row in (entry.winner_row, entry.loser_row):
        assert row is None or all(value is None or isinstance(value, str) for value in row.values())
    written = json.dumps([entry.key, entry.winner_version, entry.loser_row, entry.withheld], allow_nan=False)
    assert len(written) > 0, "the repository stores it as JSON"


def test_what_concord_has_stored_is_read_as_it_was() -> None:
    entry = read({name: json.dumps(value) for name, value in USUAL.items()})
    assert {name: getattr(entry, name) for name in USUAL} == USUAL
    early = {"origin": "london#1", "changed_at": 20}
    assert stored.version_of(early) == early, "entries of early releases have not all parts"
