"""Two sites in memory and both ends of a link between them, as the dialect contract describes them.

A transmission runs on them in milliseconds. The product's own functions decide the rows
(`tests.histories.sites_in_memory`).
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self, cast

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Cut, Progress, Survey
from concord.databases.contract.memory import LinkState, Memory, SiteRow
from concord.databases.contract.questions import Answer, Question
from concord.databases.contract.reading import Part, Reading, Relay, Relayed, readers_for
from concord.databases.contract.rows import Rebounding
from concord.databases.contract.rows import Staged as StagedRows
from concord.jobs.link import Direction, LinkJob, TableReport, TransmissionReport
from concord.jobs.site import Credentials, SiteAccess
from concord.messages.errors import LeaseLost
from concord.messages.pace import Meter
from concord.rules.brake import Brakes, Effect
from concord.rules.policy import Policy
from concord.rules.resolver import total_order
from concord.tables.manipulation import NOTHING, Manipulation
from concord.tables.replication_set import ReplicatedTable, TableName
from concord.tables.structure import CanonicalColumn, Structure
from concord.transmission.link import Changes, Link
from concord.transmission.staged_table import StagedTable, some
from concord.transmission.steps import nothing_to_ask, unheard
from concord.transmission.straight import Carry, stage_by_the_driver
from concord.transmission.transmit import transmit
from concord.transmission.verdicts import SETTLED, STOPPING, UNFAITHFUL
from concord.versions.conflict import Outcome, classify
from concord.versions.position import LinkPosition, Session, remembered
from concord.versions.row_version import RowVersion
from tests.histories.sites_in_memory import Copy, Incoming, LinkRun, arrived

ORDER = total_order({})
COLUMNS = {"key": "bigint", "content": "text"}


def latest(incoming: RowVersion, present: RowVersion) -> bool:
    """Does the source win by `latest_timestamp`?"""
    return (incoming.changed_at, incoming.origin) > (present.changed_at, present.origin)


@dataclass(frozen=True, slots=True)
class MemoryShape:
    """A table of a key and a text."""

    name: str
    site: str
    policy: Policy = field(default_factory=Policy)
    manipulation: Manipulation = NOTHING
    type: str = "text"
    private: frozenset[str] = frozenset()
    key_is_private: bool = False
    key_aliases: tuple[str, ...] = ("key",)

    @property
    def relayed(self) -> Self:
        return self

    @property
    def structure(self) -> Structure:
        columns = {
            "key": CanonicalColumn("bigint", "bigint"),
            "content": CanonicalColumn(self.type, self.type),
        }
        return Structure(self.site, columns, frozenset({"key"}))


@dataclass(frozen=True, slots=True)
class MemoryStaged:
    """A place in a target's staging."""

    shape: MemoryShape
    relation: str
    rows: int = 0
    attempts: tuple[int, ...] = ()

    @property
    def types(self) -> Mapping[str, str]:
        return COLUMNS

    def believing(self, attempts: Sequence[int], rows: int) -> MemoryStaged:
        return replace(self, attempts=tuple(attempts), rows=rows)


@dataclass
class MemorySite:
    """One site: its tables, and everything that a test may want to be wrong with it."""

    name: str
    tables: dict[str, Copy]
    states: dict[str, LinkState] = field(default_factory=dict)
    heartbeat: int = 0
    epoch: int = 0
    clock_ahead: float = 0.0
    identity: str = "the database that was provisioned"
    altered: dict[str, list[str]] = field(default_factory=dict)
    altered_meanwhile: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    parents: dict[str, set[str]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    not_owned: dict[str, int] = field(default_factory=dict)
    manipulation: Manipulation = NOTHING
    refused: set[tuple[str, int]] = field(default_factory=set)  #: rows that it does not take
    waiting: dict[str, list[Incoming]] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)  #: rows by table that its readers do not find
    questions: dict[str, list[Question]] = field(default_factory=dict)
    answered: list[tuple[Question, Answer]] = field(default_factory=list)
    before_write: Callable[[Collection[str], bool], None] = lambda released, asks: None
    decided_here: set[str] = field(
        default_factory=set
    )  #: tables whose rebounding rows met in a conflict here
    staging: dict[str, dict[int, list[Incoming]]] = field(default_factory=dict)
    cuts: dict[str, dict[str, Copy]] = field(default_factory=dict)

    @property
    def copies(self) -> list[Copy]:
        return list(self.tables.values())

    @property
    def origin(self) -> str:
        return self.copies[0].origin

    @property
    def transaction(self) -> int:
        """The next one's number, in all tables."""
        return max(copy.transaction for copy in self.copies)

    @property
    def position(self) -> str:
        return f"{self.transaction}:"

    def edit(self, table: str, key: int, content: str | None, *, now: int = 1) -> None:
        """A user's transaction."""
        copy = self.tables[table]
        copy.transaction = self.transaction
        copy.commit(copy.begin({key: content}, now))

    def as_row(self) -> SiteRow:
        return SiteRow(self.name, self.origin, self.identity, self.heartbeat, 0)


@dataclass
class MemoryEnd:
    """The part that source and target have in common."""

    job: LinkJob
    here: MemorySite
    cut_tables: dict[str, Copy] | None = None
    counted: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    def close(self) -> None:
        self.closed = True

    def survey(self, tables: Sequence[ReplicatedTable]) -> Survey[MemoryShape]:
        site = self.here
        shapes = {
            table.name: MemoryShape(
                table.name, site.name, table.policy, site.manipulation, site.types.get(table.name, "text")
            )
            for table in tables
            if table.name in site.tables
        }
        return Survey(shapes, site.altered, site.parents, site.clock_ahead, site.lost)

    def site(self) -> SiteRow:
        return self.here.as_row()

    def memory(self, *links: str) -> Memory:
        return Memory([self.here.states[link] for link in links], self.site())

    def fenced_memory(self, *links: str) -> Memory:
        if self.job.epoch < self.here.epoch:
            raise LeaseLost
        self.here.epoch = self.job.epoch
        return self.memory(*links)

    def register(self, shapes: Sequence[MemoryShape], since: Mapping[str, str]) -> dict[str, int]:
        return {}

    def count_arrived(
        self, shapes: Sequence[MemoryShape], since: Mapping[str, str], excluded: str | None
    ) -> dict[str, int]:
        self.counted = {
            shape.name: len(self.changes(shape.name, since[shape.name], excluded)) for shape in shapes
        }
        return self.counted

    def changes(self, table: str, since: str, excluded: str | None) -> list[Incoming]:
        return changes_of((self.cut_tables or self.here.tables)[table], since, excluded, self.job)


def changes_of(copy: Copy, since: str, excluded: str | None, job: LinkJob) -> list[Incoming]:
    """The changes that arrived after the position; of a backfill, those of its interval."""

    def wanted(at: int, position: int, received_from: str | None) -> bool:
        if job.interval:
            return job.interval.start <= at < job.interval.end
        return arrived(position, since) and (excluded is None or received_from != excluded)

    return [
        Incoming(key, copy.rows.get(key), replace(each.version, deleted=key not in copy.rows))
        for key, each in sorted(copy.shadow.items())
        if wanted(each.version.changed_at, each.position, each.received_from)
    ]


class MemorySource(MemoryEnd):
    """Where changes come from."""

    @contextmanager
    def cut(self) -> Iterator[Cut]:
        name = uuid.uuid4().hex
        self.cut_tables = self.here.cuts[name] = deepcopy(self.here.tables)
        try:
            yield Cut(self.here.position, name)
        finally:
            del self.here.cuts[name]
            self.cut_tables = None

    def beat(self, position: str | None = None) -> int:
        self.here.heartbeat += 1
        return self.here.heartbeat

    def count_not_owned(self, shapes: Sequence[MemoryShape], since: Mapping[str, str]) -> dict[str, int]:
        return {shape.name: self.here.not_owned.get(shape.name, 0) for shape in shapes}

    def readers(self, shape: MemoryShape, since: str, excluded: str | None, count: int, cut: Cut) -> Reading:
        parts = readers_for(count, self.job.source.readers)
        queries = [json.dumps([shape.name, since, excluded, part, parts]) for part in range(parts)]
        schema = ", ".join(f"{name} string" for name in COLUMNS)
        return Reading(self.here.name, (cut.exported,), tuple(queries), schema, cut.position)

    def without_conflict(self, table: str, found: Sequence[Rebounding]) -> list[Rebounding]:
        return [] if table in self.here.decided_here else list(found)

    def altered_since(self, shapes: Sequence[MemoryShape]) -> dict[str, str]:
        names = {shape.name for shape in shapes}
        return {name: why for name, why in self.here.altered_meanwhile.items() if name in names}

    def remember(self, state: LinkState, session: Session) -> None:
        self.here.states[self.job.link] = with_session(state, session)


class MemoryTarget(MemoryEnd):
    """Where changes go."""

    def create_staging(self, shape: MemoryShape, ordinal: int) -> MemoryStaged:
        relation = f"{self.job.transmission}_{ordinal}"
        assert relation not in self.here.staging, "two tables share a place"
        self.here.staging[relation] = {}
        return MemoryStaged(shape, relation)

    def staging_login(self) -> str:
        return self.here.name

    def questions(self, staged: MemoryStaged) -> Sequence[Question]:
        return self.here.questions.get(staged.shape.name, [])

    def answer(self, staged: MemoryStaged, asked: Sequence[tuple[Question, Answer]]) -> None:
        self.here.answered += asked

    def effect(self, staged: MemoryStaged, brakes: Brakes, most: Effect) -> Effect:
        present = self.here.tables[staged.shape.name].rows
        met = [each for each in self.believed(staged) if each.key in present]
        deletes = sum(each.content is None for each in met)
        return Effect(deletes=deletes, changes=len(met) - deletes, rows=len(present))

    def waiting(self, shapes: Sequence[MemoryShape], first: int) -> Sequence[MemoryStaged]:
        named = [shape for shape in shapes if self.here.waiting.get(shape.name)]
        return [self.create_staging(shape, ordinal) for ordinal, shape in enumerate(named, first)]

    def believed(self, staged: MemoryStaged) -> list[Incoming]:
        attempts = self.here.staging.get(staged.relation, {})
        return [row for attempt in staged.attempts for row in attempts[attempt]]

    def write(
        self,
        staged: Sequence[MemoryStaged],
        state: LinkState,
        session: Session | None,
        progress: Progress,
        released: Collection[str] = (),
        asks: bool = True,
        ask_hook: object = None,
    ) -> dict[str, TableReport]:
        self.here.before_write(released, asks)
        written = {place.shape.name: self._write(place) for place in staged}
        if session is not None and self.job.moves_positions:
            self.here.states[self.job.link] = with_session(state, session)
        progress("commit")
        return written

    def _write(self, place: MemoryStaged) -> TableReport:
        table = place.shape.name
        copy, retried = self.here.tables[table], self.here.waiting.pop(table, [])
        every = [*retried, *self.believed(place)]
        refused = [each for each in every if (table, each.key) in self.here.refused]
        if refused:
            self.here.waiting[table] = refused
        copy.transaction = self.here.transaction
        source = Copy(self.job.source.name, {})
        run = LinkRun(self.job.link, source, copy, self.job.transmission, latest, {})
        found = run.write_rows(each for each in every if each not in refused)
        return TableReport(
            table=table,
            acquired=len(every),
            retried=len(retried),
            applied=found["applied"] + found["won"],
            converged=found["converged"],
            superseded=found["superseded"],
            lost=found["lost"],
            conflicts=found["won"] + found["lost"],
            quarantined=len(refused),
        )

    def drop_staging(self) -> None:
        for relation in [each for each in self.here.staging if each.startswith(self.job.transmission)]:
            del self.here.staging[relation]


def with_session(state: LinkState, session: Session) -> LinkState:
    return replace(state, history=tuple(remembered(state.history, session)))


@dataclass
class MemoryDialect:
    """The members that a transmission asks for, of sites by their names."""

    sites: Mapping[str, MemorySite]
    job: LinkJob
    ends: list[MemoryEnd] = field(default_factory=list)
    relays: list[object] = field(default_factory=list)
    borrowed: int = 0  #: relays over the connections of both ends
    before_part: Callable[[Part], None] = lambda part: None

    def source(self, job: LinkJob) -> MemorySource:
        self.ends.append(MemorySource(job, self.sites[job.source.name]))
        return cast("MemorySource", self.ends[-1])

    def target(self, job: LinkJob) -> MemoryTarget:
        self.ends.append(MemoryTarget(job, self.sites[job.target.name]))
        return cast("MemoryTarget", self.ends[-1])

    def relay(self) -> Relay:
        made = MemoryRelay(self)
        self.relays.append(made)
        return cast("Relay", made)

    def between(self, source: MemorySource, target: MemoryTarget) -> Relay:
        self.borrowed += 1
        return self.relay()


@dataclass
class MemoryRelay:
    """Reads a part in its cut and puts it into staging under the attempt's number."""

    dialect: MemoryDialect
    ended: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True

    def __call__(self, part: Part, attempt: int) -> Relayed:
        self.dialect.before_part(part)
        rows = self.rows(part.reading, part.query)
        self.dialect.sites[part.login].staging[part.relation][attempt] = rows
        removals = sum(row.content is None for row in rows) if part.weighed else 0
        return Relayed(attempt, len(rows), removals, sum(len(row.content or "") + 8 for row in rows))

    def rows(self, reading: Reading, query: str) -> list[Incoming]:
        table, since, excluded, part, parts = json.loads(query)
        site = self.dialect.sites[reading.login]
        copy = site.cuts[reading.preamble[0]][table]
        found = changes_of(copy, since, excluded, self.dialect.job)
        return found[part::parts][: len(found) - site.unread[table]]


@dataclass
class MemorySpark:
    """Spark's part: it judges by the same functions as the target."""

    dialect: MemoryDialect
    started: int = 0
    carried: list[str] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    met: list[list[str]] = field(default_factory=list)
    shown: list[Mapping[str, object]] = field(default_factory=list)
    answer: Answer = field(default_factory=lambda: Answer("source_wins", "custom", None, None))
    unfaithful: set[int] = field(default_factory=set)  #: keys that would not come back the same
    lost: int = 0  #: rows that it loses on the way

    def start(self) -> None:
        self.started += 1

    def carrying(self, relay: Callable[[], Relay], meter: Meter) -> tuple[Carry, Callable[[], None]]:
        def carry(ways: Sequence[Any], login: str, readers: int) -> list[StagedTable]:
            self.carried += [way.place.shape.name for way in ways]
            return stage_by_the_driver(iter(relay, None), ways, login, readers)

        return carry, nothing_to_ask

    def planned(self, link: Link, changes: Changes) -> tuple[Counter[str], Mapping[str, Sequence[str]]]:
        judged = self._judged(link, changes)
        return Counter(verdict for _, verdict in judged), self._reasons(judged)

    def staged(self, link: Link, changes: Changes) -> tuple[StagedRows, StagedTable]:
        shape = link.opened.target_shapes[changes.table]
        place = link.target.create_staging(shape, changes.ordinal)
        judged = self._judged(link, changes)
        rows = [row for row, verdict in judged if verdict not in SETTLED]
        settled = Counter(verdict for _, verdict in judged if verdict in SETTLED)
        self.dialect.sites[link.job.target.name].staging[place.relation][0] = rows
        removals = sum(row.content is None and verdict in ("apply", "source_wins") for row, verdict in judged)
        return place, StagedTable((0,), settled, len(rows), removals, 8, self._reasons(judged))

    def answers(self, shape: MemoryShape, shown: Sequence[Mapping[str, object]]) -> Sequence[Answer]:
        self.shown += shown
        return [self.answer] * len(shown)

    def ask_hook(self, hooked: object, rows: object) -> list[object]:
        return []

    def _judged(self, link: Link, changes: Changes) -> list[tuple[Incoming, str]]:
        self.judged.append(changes.table)
        self.met.append(list(changes.met))
        relay = MemoryRelay(self.dialect)
        rows = [row for query in changes.reading.queries for row in relay.rows(changes.reading, query)]
        present = self.dialect.sites[link.job.target.name].tables[changes.table]
        return [(row, self._verdict(row, present)) for row in rows[self.lost :]]

    def _verdict(self, row: Incoming, present: Copy) -> str:
        if row.key in self.unfaithful:
            return UNFAITHFUL
        exists = row.key in present.rows and present.rows[row.key] != row.content
        standing = present.version(row.key)
        outcome = classify(row.version, standing, ORDER, row_exists=exists)
        if outcome is not Outcome.CONFLICTED:
            return outcome.value
        return "source_wins" if latest(row.version, standing) else "target_wins"

    def _reasons(self, judged: Sequence[tuple[Incoming, str]]) -> dict[str, tuple[str, ...]]:
        stopping = {verdict for _, verdict in judged if verdict in STOPPING}
        return {
            verdict: some(f"key {row.key}" for row, given in judged if given == verdict)
            for verdict in stopping
        }


@dataclass
class MemoryPair:
    """London and Cape Town, which hold the same rows, and their links."""

    london: MemorySite
    capetown: MemorySite
    tables: tuple[ReplicatedTable, ...]
    fields: dict[str, Any] = field(default_factory=dict)  #: of every job
    prepare: Callable[[MemoryDialect, MemorySpark], None] = lambda dialect, spark: None
    steps: list[str] = field(default_factory=list)  #: of the newest run
    dialect: MemoryDialect = field(init=False)
    spark: MemorySpark = field(init=False)
    epochs: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def sites(self) -> tuple[MemorySite, MemorySite]:
        return (self.london, self.capetown)

    def job(self, direction: str = "forward", **changed: Any) -> LinkJob:
        ends = self.sites if direction == "forward" else self.sites[::-1]
        source, target = (access(site.name) for site in ends)
        given: dict[str, Any] = {
            "synchronization": "london_capetown",
            "direction": Direction(direction),
            "transmission": uuid.uuid4().hex,
            "epoch": next(self.epochs),
            "source": source,
            "target": target,
            "tables": self.tables,
        }
        return LinkJob(**(given | self.fields | changed))

    def run(
        self, direction: str = "forward", progress: Progress = unheard, **changed: Any
    ) -> TransmissionReport:
        """One link, once."""
        job = self.job(direction, **changed)
        self.dialect = MemoryDialect({site.name: site for site in self.sites}, job)
        self.spark = MemorySpark(self.dialect)
        self.prepare(self.dialect, self.spark)
        self.steps = []

        def heard(step: str) -> None:
            self.steps.append(step)
            progress(step)

        dialect = cast("Dialect", self.dialect)
        return transmit(job, lambda _: dialect, cast("Any", self.spark), heard)

    def settle(self) -> None:
        for direction in ("forward", "reverse") * 2:
            self.run(direction)

    @property
    def equal(self) -> bool:
        ours, theirs = ({name: copy.rows for name, copy in site.tables.items()} for site in self.sites)
        return ours == theirs

    def positions(self, link: str = "london_capetown/forward") -> list[dict[str, str]]:
        """Of each table, by the newest session of either end."""
        newest = (site.states[link].history[0] for site in self.sites)
        return [{table.name: each.position.of(table.name) for table in self.tables} for each in newest]


def access(name: str) -> SiteAccess:
    login = Credentials(host="nowhere", database=name, user="nobody")
    return SiteAccess(name=name, reader=login, applier=login)


def replicated(name: str, **fields: Any) -> ReplicatedTable:
    return ReplicatedTable(table=TableName(schema_name="public", name=name), **fields)


def memory_pair(*tables: ReplicatedTable, rows: int = 5) -> MemoryPair:
    """Two sites whose tables (`shelf` when none is given) hold the same rows, and have been declared equal."""
    wanted = tables or (replicated("shelf"),)
    london, capetown = (_site(name, wanted, rows) for name in ("london", "capetown"))
    for link, source, target in (("forward", london, capetown), ("reverse", capetown, london)):
        session = Session(f"first of {link}", source.origin, target.origin, 0, LinkPosition(source.position))
        initialized = {table.name: {"filter": table.filter_text} for table in wanted}
        for end in (source, target):
            end.states[f"london_capetown/{link}"] = LinkState(initialized, (session,))
    return MemoryPair(london, capetown, wanted)


def _site(name: str, tables: Sequence[ReplicatedTable], rows: int) -> MemorySite:
    content = dict.fromkeys(range(1, rows + 1), "common")
    return MemorySite(name, {table.name: Copy(name, dict(content)) for table in tables})
