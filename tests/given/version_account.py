"""An account of every row version of the table `item`, kept by the databases themselves.

A trigger on the shadow table writes one line per change of a key, in the change's own transaction. The line holds
the version before, the version now, and the row's token. A link writes the token after the version, so its lines
are written last. A registration from a log writes users' own versions. The lock on the
shadow row orders the lines of a key, so the account misses nothing.

Where the log tells, a user's row may stand beside a tombstone already: nobody has registered its insert yet.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import psycopg

from concord.versions.row_version import RowVersion
from tests.given.site import APPLIER, Site

Dot = tuple[int, str, int, int]  #: key, origin, changed_at, derived

BY_LOG = "EXISTS (SELECT FROM concord.log_capture)"

INSTALL = f"""
CREATE SCHEMA account;
CREATE TABLE account.line (number bigserial PRIMARY KEY, by_link boolean NOT NULL, key int NOT NULL, token text,
                          before jsonb, after jsonb NOT NULL);
CREATE FUNCTION account.keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND to_jsonb(NEW) - 'concord_written_by' = to_jsonb(OLD) - 'concord_written_by' THEN
    RETURN NULL;  -- whose row it is, and no version
  END IF;
  INSERT INTO account.line (by_link, key, token, before, after)
  SELECT session_user = '{APPLIER}' AND current_setting('transaction_isolation') <> 'repeatable read', NEW.id,
         (SELECT token FROM public.item WHERE id = NEW.id AND NOT (NEW.deleted AND {BY_LOG})),
         CASE TG_OP WHEN 'UPDATE' THEN to_jsonb(OLD) END, to_jsonb(NEW);
  RETURN NULL;
END $$;
CREATE TRIGGER keep AFTER INSERT OR UPDATE ON concord."public.item" FOR EACH ROW
WHEN (session_user <> '{APPLIER}') EXECUTE FUNCTION account.keep();
CREATE CONSTRAINT TRIGGER keep_links AFTER INSERT OR UPDATE ON concord."public.item" DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (session_user = '{APPLIER}') EXECUTE FUNCTION account.keep();
ALTER TABLE concord."public.item" ENABLE ALWAYS TRIGGER keep, ENABLE ALWAYS TRIGGER keep_links;
"""


class Sites(Protocol):
    """A pair or a network."""

    @property
    def sites(self) -> Sequence[Site]: ...

    def conflicts(self) -> list[dict[str, Any]]:
        """The logs of all sites together."""


@dataclass(frozen=True)
class Line:
    """One change of one key at one site."""

    site: str
    by_link: bool
    key: int
    token: str | None
    before: RowVersion | None
    after: RowVersion
    over_agreed: bool = False  #: what was there was a tombstone that all sites had agreed to forget

    @property
    def made(self) -> Dot:
        return (self.key, *self.after.dot)

    @property
    def replaced(self) -> Dot | None:
        return None if self.before is None or self.before.is_absent else (self.key, *self.before.dot)


def install(pair: Sites) -> None:
    for site in pair.sites:
        install_at(site)


def install_at(site: Site) -> None:
    site.run(INSTALL)


def version(stored: dict[str, Any]) -> RowVersion:
    """A row version as a site stores it, as JSON."""
    vector = {origin: (at, derived) for origin, (at, derived) in stored["vector"].items()}
    return RowVersion(stored["origin"], stored["changed_at"], stored["derived"], vector, stored["deleted"])


def lines(pair: Sites) -> list[Line]:
    """The whole account of all sites, each site's in its own order."""
    return [line for site in pair.sites for line in lines_of(site)]


def lines_of(site: Site, after: int = 0) -> list[Line]:
    """A site's account but for the first lines, in its own order."""
    return [line for _, line in _lines(site, f"true ORDER BY number OFFSET {after}")]


def unseen_lines(site: Site, seen: Collection[int]) -> list[tuple[int, Line]]:
    """With their numbers: a transaction that commits late was given low ones."""
    return _lines(site, f"number NOT IN ({', '.join(map(str, seen)) or 0}) ORDER BY number")


def _lines(site: Site, chosen: str) -> list[tuple[int, Line]]:
    return [
        (number, _line(site.name, (by_link, key, token), before, now))
        for number, by_link, key, token, before, now in site.rows(
            f"SELECT number, by_link, key, token, before, after FROM account.line WHERE {chosen}"
        )
    ]


def _line(
    site: str, who: tuple[bool, int, str | None], before: dict[str, Any] | None, now: dict[str, Any]
) -> Line:
    agreed = bool(before and before["agreed"])
    return Line(site, *who, version(before) if before else None, version(now), agreed)


def steps_back(account: Sequence[Line]) -> Iterator[Line]:
    """Lines after which a row is older than before, in the whole or in one entry of its vector."""
    for line in account:
        if line.over_agreed or not line.before:
            continue
        if not (line.after.includes(line.before) and _contains(line.after, line.before)):
            yield line


def _contains(whole: RowVersion, part: RowVersion) -> bool:
    return all(whole.vector.get(origin, (0, 0)) >= entry for origin, entry in part.vector.items())


def gaps(account: Sequence[Line]) -> Iterator[tuple[Line, Line]]:
    """Neighbouring lines of a key that do not fit: somebody wrote a shadow row behind the account's back."""
    by_key: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for line in account:
        by_key[line.site, line.key].append(line)
    for history in by_key.values():
        yield from (pair for pair in pairwise(history) if pair[0].after != pair[1].before)


def changed_contents(account: Sequence[Line]) -> dict[Dot, set[str | None]]:
    """Versions that hold one token here and another there."""
    tokens: dict[Dot, set[str | None]] = defaultdict(set)
    for line in account:
        if not line.after.is_absent:
            tokens[line.made].add(line.token)
    return {dot: found for dot, found in tokens.items() if len(found) > 1}


def unaccounted(account: Sequence[Line], pair: Sites) -> list[Line]:
    """Edits that have none of the four ends of I2 (`tests.histories.life`). Of two that did the very same thing,
    neither may have heard of the other."""
    edits = [line for line in account if not line.by_link]
    known = {line.replaced for line in edits} | final_versions(pair) | recorded_losers(pair)
    left = [line for line in edits if line.made not in known]
    while more := {line.made for line in left if any(_same_thing(line, other, known) for other in edits)}:
        known |= more
        left = [line for line in left if line.made not in known]
    return left


def _same_thing(line: Line, other: Line, known: Collection[Dot | None]) -> bool:
    apart = not (line.after.includes(other.after) or other.after.includes(line.after))
    return line.key == other.key and line.token == other.token and other.made in known and apart


def final_versions(pair: Sites) -> set[Dot]:
    """Versions that stand at every site in the end."""
    query = 'SELECT id, origin, changed_at, derived FROM concord."public.item"'
    return set.intersection(*(set(site.rows(query)) for site in pair.sites))


def of_items(conflicts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [conflict for conflict in conflicts if conflict["table_name"] == "public.item"]


def recorded_losers(pair: Sites) -> set[Dot]:
    return {
        (_key(conflict), *version(conflict["loser_version"]).dot) for conflict in of_items(pair.conflicts())
    }


def misrecorded(account: Sequence[Line], pair: Sites) -> list[dict[str, Any]]:
    """Conflicts whose row images are not what their versions held."""
    tokens = {line.made: line.token for line in account}

    def wrong(conflict: dict[str, Any], side: str) -> bool:
        held, image = version(conflict[f"{side}_version"]), conflict[f"{side}_row"]
        return bool(tokens[(_key(conflict), *held.dot)] != (image and image["token"]))

    return [
        conflict
        for conflict in of_items(pair.conflicts())
        if wrong(conflict, "loser") or wrong(conflict, "winner")
    ]


def needless(pair: Sites) -> list[dict[str, Any]]:
    """Conflicts of which one version had seen the other."""
    return [
        conflict
        for conflict in pair.conflicts()
        if version(conflict["loser_version"]).includes(version(conflict["winner_version"]))
        or version(conflict["winner_version"]).includes(version(conflict["loser_version"]))
    ]


def between_alike(pair: Sites) -> list[dict[str, Any]]:
    """Conflicts by which nothing was lost: both sites deleted the row, or left the same one."""
    return [each for each in pair.conflicts() if each["winner_row"] == each["loser_row"]]


def _key(conflict: dict[str, Any]) -> int:
    return int(conflict["key"][0])


def shown(connection: psycopg.Connection[Any]) -> dict[int, tuple[RowVersion, bool]]:
    """A reader's sight in one statement: key → its version, and whether the row is there."""
    query = (
        'SELECT s.id, to_jsonb(s), t.id IS NOT NULL FROM concord."public.item" s LEFT JOIN item t USING (id)'
    )
    return {key: (version(stored), exists) for key, stored, exists in connection.execute(query)}
