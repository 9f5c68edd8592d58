"""A batch of histories lived by real databases and real transmissions; each verb of the schedule is a method. The
oracle is told of every edit, as the databases' own account has it, and of every link that has committed."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest

from concord.databases.postgresql.upkeep import cleanup, forgetting
from concord.jobs.initialization import How, InitializationJob
from concord.jobs.link import TransmissionReport
from concord.jobs.upkeep import CarryingSite
from concord.messages.errors import IdentityChanged
from embedded.postgres import Server
from spark_jobs.initialize import initialize
from tests.given import version_account
from tests.given.many_sites import Network
from tests.histories.life import connected
from tests.histories.oracle import Edit as Made
from tests.histories.oracle import Oracle, Told
from tests.histories.script import NEWCOMER
from tests.link.histories import visits
from tests.link.histories.batch_plan import ITEMS, PLANES, SEATS, VISITS, WIDTH, Plan
from tests.link.histories.users import Users
from tests.link.histories.visits import Visits

TABLES = (
    "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL, note text NOT NULL)",
    "CREATE TABLE plane (id int PRIMARY KEY, name text)",
    "CREATE TABLE seat (id int PRIMARY KEY, plane int NOT NULL REFERENCES plane, place int UNIQUE NOT NULL)",
    *visits.DDL,
)


class Crash(BaseException):
    """The driver dies here: nothing catches it."""


def common(histories: Iterable[int]) -> tuple[str, ...]:
    """The rows of all sites in the beginning: every other item and visit, two planes, three seats of a history."""
    base = f"(VALUES {', '.join(f'({history * WIDTH})' for history in histories)}) h (n)"
    return (
        f"INSERT INTO item SELECT n + k, 'common ' || n + k, md5('common ' || n + k) FROM {base},"
        f" generate_series(0, {ITEMS - 1}, 2) k",
        f"INSERT INTO visit SELECT n + k, 'common', '2026-01-02 03:04:05+00', false FROM {base},"
        f" generate_series(0, {VISITS - 1}, 2) k",
        f"INSERT INTO plane SELECT n + k, 'plane' FROM {base}, generate_series(0, {PLANES - 1}) k",
        f"INSERT INTO seat SELECT n + k, n, n + k FROM {base}, generate_series(0, {SEATS - 1}) k",
    )


def _unmarked(site: CarryingSite) -> CarryingSite:
    """Without the tables whose marks need a tolerance: a cleanup of this very moment would forget too early."""
    marked = {table.name for table in site.tables if table.tracking}
    links = {name: out for name, out in site.links_out.items() if name not in marked}
    return replace(site, links_out=links, tables=tuple(each for each in site.tables if not each.tracking))


@dataclass
class Batch:
    """A network of real sites that live a plan."""

    plan: Plan
    network: Network
    server: Server
    oracle: Oracle
    users: dict[str, Users] = field(default_factory=dict)
    visits: Visits = field(default_factory=Visits)
    account: list[version_account.Line] = field(default_factory=list)
    exact: bool = True  #: a restore takes knowledge away, which the oracle does not follow
    gone: set[str] = field(
        default_factory=set
    )  #: tokens that nobody else had when their site was put back or left
    gone_edits: set[Made] = field(default_factory=set)  #: those edits; another site's may have the same token
    undone: set[Made] = field(
        default_factory=set
    )  #: edits that a restore took from their own site, and no other had
    losers: set[Made] = field(default_factory=set)  #: as the repository has collected them
    lost_tokens: set[str] = field(default_factory=set)  #: of those
    counts: Counter[str] = field(default_factory=Counter)
    quiet_writes: set[str] = field(default_factory=set)  #: tables written in the round that carried nothing
    wrong: list[str] = field(default_factory=list)  #: what was seen on the way
    _seen: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    replaced: list[tuple[str | None, str | None]] = field(
        default_factory=list
    )  #: tokens: old, and the edit's
    _stands: dict[str, dict[int, str | None]] = field(default_factory=lambda: defaultdict(dict))
    _edited: set[int] = field(default_factory=set)  #: steps whose edits on the way are done
    _backups: dict[str, str] = field(default_factory=dict)

    def live(self) -> None:
        """From the beginning to the rest."""
        for site in self.network.sites:
            self.users[site.name] = Users(site, self.visits)
        for number, (verb, *about) in enumerate(self.plan.schedule):
            self._edit(number, during=False)
            step: Any = getattr(self, str(verb))
            step(number, *about)
            self._edit_during(number)
        self.rest()

    def _edit(self, number: int, *, during: bool) -> None:
        for history, edit in self.plan.of(number, during=during):
            if edit.site in self.users:
                self.users[edit.site].edit(history, edit)

    def _edit_during(self, number: int) -> None:
        """Once: afterwards, where the step has left no occasion."""
        if number not in self._edited:
            self._edited.add(number)
            self._edit(number, during=True)

    # Links

    def link(self, number: int, source: str, target: str) -> TransmissionReport | None:
        return self.killed_link(number, source, target, "")

    def killed_link(self, number: int, source: str, target: str, at: str) -> TransmissionReport | None:
        """While it is under way, after it has read its source: users edit, and open transactions of the target
        end."""
        if source not in self.users or target not in self.users or not self._is_pair(source, target):
            return None
        told: list[Told] = []
        report = None

        def progress(step: str) -> None:
            if step == "cut":
                told.append(self.look(source))
            if step == "hold_fence":
                self._edit_during(number)
                self.users[target].commit()
            if step == at:
                raise Crash

        try:
            report = self.network.run(source, target, progress)  # type: ignore[arg-type]
        except Crash:
            self.counts[f"killed at {at}"] += 1
            if at not in ("remember", "clean_up") or not told:
                return None
        self.look(target)
        self.oracle.tell(target, told[0])
        self._collect(target)
        self._check_constraints(target)
        return report

    def _is_pair(self, source: str, target: str) -> bool:
        return (source, target) in self.network.topology.links

    def settle(self, number: int) -> None:
        """Twice: what a link brings, the links that go on from there have passed the second time."""
        for link in self.network.topology.links * 2:
            self.link(number, *link)

    def look(self, site: str) -> Told:
        """Take in what users did at a site since the last look; all that the site has heard of now."""
        for number, line in version_account.unseen_lines(self.network[site], self._seen[site]):
            self._seen[site].add(number)
            self.account.append(line)
            if not line.by_link:
                before = line.before.dot if line.before else ("", 0, 0)
                self.oracle.edit(site, line.key, line.after.dot, line.token, before)
                self.replaced.append((self._stands[site].get(line.key), line.token))
            self._stands[site][line.key] = line.token
        self.visits.look(self.network[site])
        return self.oracle.look(site)

    def _collect(self, site: str) -> None:
        for conflict in self.network[site].conflicts():
            if conflict["table_name"] == visits.NAME:
                self.visits.log(conflict)
                continue
            if conflict["table_name"] != "public.item":
                self.wrong.append(
                    f"I12: {site} logged a conflict of {conflict['table_name']} {conflict['key']}"
                )
                continue
            version = version_account.version(conflict["loser_version"])
            self.losers.add((int(conflict["key"][0]), version.dot))
            self.lost_tokens.add((conflict["loser_row"] or {}).get("token"))

    def _check_constraints(self, site: str) -> None:
        """I6, I10: every seat is there, on a plane that is there (unique places are the database's own matter)."""
        orphans = self.network[site].rows(
            "SELECT s.id FROM seat s LEFT JOIN plane p ON p.id = s.plane WHERE p.id IS NULL OR s.place < 0"
        )
        seats = self.network[site].value("SELECT count(*) FROM seat")
        if orphans or seats != SEATS * len(self.plan.histories):
            self.wrong.append(f"I10: {site} holds {seats} seats, without a plane or a place {orphans}")

    # People

    def clock_jumps(self, number: int, site: str, seconds: int) -> None:
        if site in self.users:
            self.network[site].run(
                f"ALTER DATABASE {self.network[site].database} SET test.ahead = '{seconds} seconds'"
            )
            self.users[site].leave()
            self.users[site] = Users(self.network[site], self.visits, edits=self.users[site].edits)

    def purge(self, number: int, deleting: int) -> None:
        """A cleanup, which dies when so many sites have deleted; what is younger than now alone stays."""
        self._commit_all()
        left = [deleting]
        delete = cleanup.delete

        def dying(*about: Any) -> tuple[int, int]:
            left[0] -= 1
            if left[0] < 0:
                raise Crash
            removed, forgotten = delete(*about)
            self.counts["purged"] += removed
            self.counts["forgotten"] += forgotten
            return removed, forgotten

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(cleanup, "delete", dying)
            try:
                now = time.time_ns() // 1000
                sites = [_unmarked(site) for site in self.network.carrying()]
                cleanup.clean(sites, dry_run=False, now_us=now, min_age_us=0, living_age_us=0)
            except Crash:
                self.counts["purge killed"] += 1

    def _commit_all(self) -> None:
        for users in self.users.values():
            users.commit()

    def join(self, number: int, peer: str) -> None:
        """A new site is loaded from one that is there."""
        self._commit_all()
        self.network.add(NEWCOMER, peer, TABLES)
        if any(table.tracking for table in self.network.tables):
            visits.copy(self.network[peer], self.network[NEWCOMER])
        self._initialize(peer, NEWCOMER)
        told = self.look(peer)  # users stand still, and a site whose log is read has only now registered them
        version_account.install_at(self.network[NEWCOMER])
        self.oracle.tell(NEWCOMER, told)
        self._stands[NEWCOMER] = dict(self.network[NEWCOMER].rows("SELECT id, token FROM item"))
        self.users[NEWCOMER] = Users(self.network[NEWCOMER], self.visits)
        self.counts["joined"] += 1

    def leave(self, number: int, site: str) -> None:
        """A site goes for good, if the others stay connected; what it told nobody goes with it."""
        topology = self.network.topology
        others = [name for name in topology.sites if name != site]
        if not connected(others, [pair for pair in topology.pairs if site not in pair]):
            return
        self._commit_all()
        for name in topology.sites:
            self.look(name)
        for peer in topology.neighbours(site):
            synchronization, _ = self.network.synchronization(site, peer)
            installer = self.network[peer].credentials(self.network[peer].superuser)
            links = [f"{synchronization}/{way}" for way in ("forward", "reverse")]
            forgetting.forget(installer, peer, links)
        self.visits.leave(site)
        self.users.pop(site).leave()
        self.network.leave(site)
        self.network.by_name.pop(site).close()
        self._lose(set(self.oracle.content) - self.oracle.known(*others))
        self.counts["left"] += 1

    def _lose(self, edits: Iterable[Made]) -> None:
        lost = set(edits)
        tokens = {self.oracle.content[edit] for edit in lost}
        self.gone |= {token for token in tokens if token and not token.startswith("alike")}
        self.gone_edits |= lost

    def back_up(self, number: int, name: str) -> None:
        """A copy of the whole database, as a backup of its files would be."""
        self._away(name)
        backup = f"{self.network[name].database}_backup"
        self._copy(self.network[name].database, backup)
        self._backups[name] = backup
        self._back(name)

    def restore(self, number: int, name: str) -> None:
        """A site is put back; users edit before anybody notices; it is refused, and then initialized with each peer
        (rule 7, F65)."""
        for each in self.network.topology.sites:
            self.look(each)
        others = [each for each in self.network.topology.sites if each != name]
        self._away(name)
        database = self.network[name].database
        self.server.drop_database(database)
        self._copy(self._backups.pop(name), database)
        self._back(name)
        restored = version_account.unseen_lines(self.network[name], ())
        self._seen[name] = {number for number, _ in restored}
        self._stands[name] = {line.key: line.token for _, line in restored}
        kept = {line.token for _, line in restored}
        there = {(line.key, line.after.dot) for _, line in restored}
        self.undone |= set(self.oracle.content) - self.oracle.known(*others) - there
        told = {self.oracle.content[edit] for edit in self.oracle.known(*others)}
        self._lose(edit for edit, token in self.oracle.content.items() if token not in kept | told)
        self.exact = False
        self._edit_during(number)
        self._commit_all()  # the next life begins when every transaction of the server's has ended
        self._is_refused(name)
        for peer in sorted(self.network.topology.neighbours(name)):
            self._bring_back(number, name, peer)
        self.counts["restored"] += 1

    def _bring_back(self, number: int, name: str, peer: str) -> None:
        """Once it is accepted, a peer that heard nothing since the backup still stands in common history with it."""
        try:
            self.link(number, name, peer)
        except IdentityChanged:
            self._initialize(peer, name)
            self._collect(peer)
            self._collect(name)

    def unreplaced(self) -> dict[int, set[str | None]]:
        """By key: the contents that its edits have left, but what another such edit was made over. A restore undoes
        knowledge, so that the oracle does not foresee which of them holds; nothing else may."""
        left = self.oracle.content.keys() - self.undone
        replaced = {self.oracle.replaces[edit] for edit in left}
        found: dict[int, set[str | None]] = defaultdict(set)
        for edit in left - replaced:
            found[edit[0]].add(self.oracle.content[edit])
        return found

    def _is_refused(self, name: str) -> None:
        for peer in sorted(self.network.topology.neighbours(name)):
            with pytest.raises(IdentityChanged):
                self.network.run(name, peer)

    def _initialize(self, one: str, other: str) -> None:
        ends = (one, other) if (one, other) in self.network.topology.pairs else (other, one)
        sites = (self.network[each] for each in ends)
        installers = {site.name: site.credentials(site.superuser) for site in sites}
        job = InitializationJob(
            link=self.network.job(*ends), how=How.AUTO, accept_restored=True, installers=installers
        )
        initialize(job, self.network.spark, lambda step: None)

    def _away(self, name: str) -> None:
        """Nobody is logged in: a database in use cannot be copied."""
        self._commit_all()
        self.users[name].leave()
        self.network[name].writes()  # waits for the links' sessions
        self.network[name].connection.close()

    def _back(self, name: str) -> None:
        site = self.network[name]
        site.connection = site.log_in(site.superuser)
        self.users[name] = Users(site, self.visits, edits=self.users[name].edits)

    def _copy(self, database: str, to: str) -> None:
        with psycopg.connect(self.server.uri("postgres"), autocommit=True) as superuser:
            superuser.execute(f"CREATE DATABASE {to} TEMPLATE {database}".encode())

    # The end

    def rest(self) -> None:
        """Writes stop, and every link runs until a round carries nothing and writes nothing (I5)."""
        self._commit_all()
        for _ in range(2 * self.network.topology.diameter + 2):
            before = {site.name: site.stored for site in self.network.sites}
            reports = [self.link(-1, *link) for link in self.network.topology.links]
            if not any(report.total("acquired") for report in reports if report):
                break
            self.counts["rounds"] += 1
        else:
            self.wrong.append("I1: the sites never come to rest")
        for site in self.network.sites:
            self.look(site.name)
            self.quiet_writes |= site.written_since(before[site.name])
