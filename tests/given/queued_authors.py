"""Authors whose users change keys as well, at London and at Cape Town, and what became of every edit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from hypothesis import strategies as st

from concord.jobs.link import Direction
from tests.given.queued_preferences import settle
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import Site

#: Nobody changes a name: it says which author a row is of.
_AUTHOR = ("CREATE TABLE author (id int PRIMARY KEY, name text NOT NULL, value int NOT NULL)",)
#: London remembers every row that it ever had, and every row that left its key.
_AUDIT = (
    "CREATE TABLE audit (left_id int, left_name text, id int, name text, value int)",
    "GRANT INSERT ON audit TO PUBLIC",
    "CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " INSERT INTO public.audit VALUES (OLD.id, OLD.name, NEW.id, NEW.name, NEW.value); RETURN NULL; END $$",
    "CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON author FOR EACH ROW EXECUTE FUNCTION audit()",
    "ALTER TABLE author ENABLE ALWAYS TRIGGER audit",
)
_LOST = (
    "SELECT (key ->> 0)::int, loser_row ->> 'name', (loser_row ->> 'value')::int FROM concord.conflict"
    " WHERE loser_site = 'capetown'"
)
#: Of one number, no other edit has the value.
_VALUES = count(1000)

#: By key: the author's name, and a value.
Rows = dict[int, tuple[str, int]]
#: A key, the author's name and the value; without these, that the row is gone.
Image = tuple[int, str | None, int | None]


class Edit(NamedTuple):
    """A statement or two on a few authors."""

    statement: str
    key: int
    other: int


class Step(NamedTuple):
    """One transaction of users; without edits, a run from that site to the other."""

    site: int
    edits: Sequence[Edit]


_MOVED = (
    "UPDATE author SET id = {other}, value = {value} WHERE id = {key}"
    " AND NOT EXISTS (SELECT FROM author WHERE id = {other})"
)
_SWAPPED = (
    "UPDATE author SET id = - id, value = {value} WHERE id IN ({key}, {other});"
    " UPDATE author SET id = CASE id WHEN - {key} THEN {other} ELSE {key} END WHERE id < 0"
)
_KEYS = st.integers(1, 5)
_EDITS = st.builds(
    Edit,
    st.sampled_from(
        (
            "UPDATE author SET value = {value} WHERE id = {key}",
            "DELETE FROM author WHERE id = {key}",
            "INSERT INTO author VALUES ({key}, 'author {value}', {value}) ON CONFLICT DO NOTHING",
            _MOVED,
            _MOVED,
            _SWAPPED,
        )
    ),
    _KEYS,
    _KEYS,
)
STEPS = st.lists(st.builds(Step, st.integers(0, 1), st.lists(_EDITS, max_size=3)), min_size=2, max_size=8)


def authors(replicated: Make, **conflict: object) -> Replicated:
    """Of three authors at both sites, with room for two more."""
    made = replicated(_AUTHOR, "public.author", updates="queued", conflict=conflict)
    made.initialize_both_ways()
    made.london.run(*_AUDIT)
    return made


def rows_of(site: Site) -> Rows:
    return {key: (name, value) for key, name, value in site.rows("SELECT * FROM author")}


@dataclass
class History:
    """One history, and what it knows of each edit."""

    sites: Replicated
    edits: list[tuple[Image, str | None]] = field(default_factory=list)  #: Cape Town's, and who was there
    deleted: set[str] = field(default_factory=set)  #: the authors whom users of either site deleted

    def begin(self) -> None:
        """Both sites have heard of everything: London's transaction alone is on its way."""
        for site in self.sites.sites:
            site.run("DELETE FROM concord.conflict")
        rows = ", ".join(f"({key}, 'author {next(_VALUES)}', {key})" for key in (1, 2, 3))
        self.sites.london.run(
            "DELETE FROM audit", f"BEGIN; DELETE FROM author; INSERT INTO author VALUES {rows}; COMMIT"
        )
        self.sites.run()

    def play(self, steps: Sequence[Step]) -> None:
        for each in steps:
            if each.edits:
                self._write(self.sites.sites[each.site], each.edits)
            else:
                self.sites.run(direction=list(Direction)[each.site])
            assert not self.doubled
        settle(self.sites)

    def _write(self, site: Site, edits: Sequence[Edit]) -> None:
        before = rows_of(site)
        values = [next(_VALUES) for _ in edits]
        made = (
            each.statement.format(value=value, key=each.key, other=each.other)
            for each, value in zip(edits, values, strict=True)
        )
        site.run(f"BEGIN; {'; '.join(made)}; COMMIT")
        after = rows_of(site)
        # The transaction may have inserted an author, and deleted the author again.
        known = {name for name, _ in before.values()} | {f"author {value}" for value in values}
        self.deleted |= known - {name for name, _ in after.values()}
        if site is self.sites.capetown:
            self.edits += _changed(before, after)

    @property
    def doubled(self) -> list[str]:
        """The authors whom London has twice."""
        query = "SELECT name FROM author GROUP BY name HAVING count(*) > 1"
        return [name for (name,) in self.sites.london.rows(query)]

    @property
    def vanished(self) -> set[str]:
        """The authors whom London has had, whom nobody deleted, and whom it has no longer."""
        had = {name for (name,) in self.sites.london.rows("SELECT name FROM audit WHERE name IS NOT NULL")}
        return had - self.deleted - {name for name, _ in rows_of(self.sites.london).values()}

    @property
    def unknown(self) -> list[Image]:
        """Cape Town's edits that were never in London, and are not in its conflict log."""
        london = self.sites.london
        known = {*london.rows("SELECT id, name, value FROM audit"), *london.rows(_LOST)}
        left = set(london.rows("SELECT left_id, left_name FROM audit"))
        return [image for image, was in self.edits if image not in known and (image[0], was) not in left]

    @property
    def unreported(self) -> set[Image]:
        """Entries of Cape Town's losses that Cape Town's own log has not."""
        london, capetown = (set(site.rows(_LOST)) for site in self.sites.sites)
        return london - capetown


def _changed(before: Rows, after: Rows) -> Iterator[tuple[Image, str | None]]:
    """Each row that is another; of one that is gone, who was there."""
    for key in sorted(before.keys() | after.keys()):
        if key in after and before.get(key) != after[key]:
            yield (key, *after[key]), None
        elif key not in after:
            yield (key, None, None), before[key][0]
