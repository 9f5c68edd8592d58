"""A cleanup of the copies in memory, as sites agree on what they forget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from concord.versions.position import Session
from concord.versions.row_version import RowVersion
from tests.histories.sites_in_memory import TABLE, Copy, arrived, newest

Held = tuple[int, tuple[str, int, int]]  #: a key, and the version that a site holds


@dataclass(frozen=True, slots=True)
class Stand:
    """One site's word to a version that may be forgotten."""

    goes: bool  #: it holds the version, and every link out of the site has sent it
    agreed: bool  #: an earlier cleanup has published it
    holds: bool  #: that version or another one


@dataclass
class Cleanup:
    """A cleanup (rule 10), site by site: it asks all of them, publishes at all, then forgets at all. Users and links go
    on between any two steps, and it may die there."""

    sites: Sequence[Copy]
    links_out: Mapping[str, Sequence[str]]
    living: bool  #: the versions of rows as well, not tombstones alone
    forgotten: list[tuple[str, Held]] = field(default_factory=list)

    def steps(self) -> Iterator[str]:
        sent: dict[str, list[Session]] = {}
        found: dict[str, dict[Held, Stand]] = {}
        known: set[Held] = set()
        for site in self.sites:
            sent[site.name] = [site.sessions[link][0] for link in self.links_out[site.name]]
            known |= self._may_go(site, sent[site.name])
            yield "ask"
        for site in self.sites:
            sessions = sent[site.name]
            mine = self._may_go(site, sessions)
            found[site.name] = {
                each: Stand(
                    each in mine, each in mine and site.shadow[each[0]].agreed, each[0] in site.shadow
                )
                for each in known
            }
            yield "look up"
        agreed = {each for each in known if _all_agree([stands[each] for stands in found.values()])}
        floor = max((newest(site.version(key)) for site in self.sites for key, _ in agreed), default=0)
        for site in self.sites:
            agreed &= self._published(site, agreed, found[site.name], sent[site.name], floor)
            yield "publish"
        for site in self.sites:
            for key, dot in sorted(agreed):
                if key not in site.locked and site.version(key).dot == dot and site.shadow[key].agreed:
                    site.forgetful |= not site.version(key).deleted
                    del site.shadow[key]
                    self.forgotten.append((site.name, (key, dot)))
            yield "forget"

    def _may_go(self, site: Copy, sessions: Sequence[Session]) -> set[Held]:
        return {
            (key, each.version.dot)
            for key, each in site.shadow.items()
            if (self.living or each.version.deleted)
            and each.version.deleted == (key not in site.rows)
            and not any(arrived(each.position, session.position.of(TABLE)) for session in sessions)
        }

    def _published(
        self,
        site: Copy,
        agreed: set[Held],
        stands: Mapping[Held, Stand],
        sessions: Sequence[Session],
        floor: int,
    ) -> set[Held]:
        """A row that is edited meanwhile, or not yet sent again, is left for another day."""
        if agreed:
            site.stamp_floor = max(site.stamp_floor, floor)
            for link, session in zip(self.links_out[site.name], sessions, strict=True):
                site.floors[link] = session.id
        published = {each for each in agreed if not stands[each].goes or stands[each].agreed}
        for key, dot in (agreed & self._may_go(site, sessions)) - published:
            if key not in site.locked:
                site.shadow[key] = replace(site.shadow[key], agreed=True, version=_common(site.version(key)))
                published.add((key, dot))
        return published


def _all_agree(stands: Sequence[Stand]) -> bool:
    """Every site holds it and has sent it on; or one that does had agreed, and the others hold nothing any more."""
    holders = [each for each in stands if each.goes]
    if len(holders) == len(stands):
        return True
    return any(each.agreed for each in holders) and not any(each.holds for each in stands if not each.goes)


def _common(version: RowVersion) -> RowVersion:
    """All sites have had the row: an insert of it is no news to any of them."""
    return version if version.deleted else replace(version, born=False)
