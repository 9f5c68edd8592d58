"""The configuration: one YAML file, parsed once into frozen values, every mistake named at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, field_validator, model_validator

from concord.configuration import file, schema
from concord.configuration.conflict_rules import places
from concord.configuration.field import ByName, Settings, is_name
from concord.configuration.finding import Finding, below_any, dotted
from concord.configuration.initialize import InitializeSettings
from concord.configuration.notices import notices
from concord.configuration.objective import ObjectiveSettings
from concord.configuration.replication import ReplicationSettings
from concord.configuration.retention import PurgeSchedule, Retention
from concord.configuration.rules import broken_rules
from concord.configuration.secret import secrets
from concord.configuration.sections import Sections
from concord.configuration.settings import (
    ReplicationSetSettings,
    SiteSettings,
    SynchronizationSettings,
    TableSettings,
)
from concord.configuration.snapshot import SnapshotSettings, captured_for_snapshots
from concord.jobs.replication import ReplicationDefinition, replication_name
from concord.jobs.site import Capture
from concord.jobs.snapshot import SnapshotDefinition, SnapshotKind
from concord.machine.clone import clone
from concord.messages.errors import ConfigurationInvalid, Problem
from concord.tables.replication_set import ReplicatedTable

__all__ = [
    "Configuration",
    "PurgeSchedule",
    "ReplicationSetSettings",
    "ReplicationSettings",
    "Retention",
    "SiteSettings",
    "SnapshotSettings",
    "SynchronizationSettings",
    "TableSettings",
    "config_path",
    "json_schema",
    "load",
]

Part = TypeVar("Part", bound=BaseModel)

_DEFAULT = Path("config/concord.yaml")


class Configuration(Settings):
    """Which sites there are, which tables they share, and which pairs are kept equal."""

    sites: ByName[SiteSettings]
    replication_sets: ByName[ReplicationSetSettings] = Field(
        default_factory=lambda: MappingProxyType({}),
        description="Tables that synchronizations and replications carry.",
    )
    synchronizations: ByName[SynchronizationSettings] = Field(
        default_factory=lambda: MappingProxyType({}), description="Pairs of sites that are kept equal."
    )
    snapshots: ByName[SnapshotSettings] = Field(
        default_factory=lambda: MappingProxyType({}), description="Read-only copies of a query's content."
    )
    replications: ByName[ReplicationSettings] = Field(
        default_factory=lambda: MappingProxyType({}),
        description="Transactions of one site that are replayed at another.",
    )
    retention: Retention = Retention()
    initialize: InitializeSettings = InitializeSettings()
    _notices: tuple[Problem, ...] = PrivateAttr(default=())

    @property
    def notices(self) -> tuple[Problem, ...]:
        """Harmless oddities of the file, each with its place, in the order of its lines."""
        return self._notices

    @field_validator("synchronizations")
    @classmethod
    def _without_self_links(
        cls, written: Mapping[str, SynchronizationSettings]
    ) -> Mapping[str, SynchronizationSettings]:
        """A link from a site to itself is none (S4-175); a notice says so."""
        return MappingProxyType({name: pair for name, pair in written.items() if not pair.is_self_link})

    @model_validator(mode="after")
    def _parts_fit(self) -> Configuration:
        sections = Sections(
            self.sites,
            self.replication_sets,
            self.synchronizations,
            self.sites.keys(),
            self.replication_sets.keys(),
            snapshots=self.snapshots,
            replications=self.replications,
            retention=self.retention,
        )
        if problems := [f"{dotted(finding.path)}: {finding.text}" for finding in broken_rules(sections)]:
            raise ValueError("\n".join(problems))
        return self

    def tables(self, synchronization: str) -> tuple[ReplicatedTable, ...]:
        """The tables of a synchronization as its links carry them. Raises KeyError for an unknown name."""
        pair = self.synchronizations[synchronization]
        wanted = self.replication_sets[pair.replication_set]
        return tuple(
            table.replicated((table.conflicts or pair.conflicts).policy(places(self.shared_along(table))))
            .sharing(wanted.identity_of(table))
            .braked(pair.brakes_of(table))
            .told_by_log(self._read_logs)
            for table in wanted.tables
        )

    @property
    def _read_logs(self) -> list[str]:
        """The sites whose changes are read from the log."""
        return [name for name, site in self.sites.items() if site.capture is Capture.LOG]

    @property
    def objectives(self) -> dict[str, ObjectiveSettings]:
        """By the name that the repository has for the synchronization or the replication."""
        wanted = {name: each.objective for name, each in self.synchronizations.items()}
        wanted |= {replication_name(name): each.objective for name, each in self.replications.items()}
        return {name: each for name, each in wanted.items() if each is not None}

    def shared_along(self, table: TableSettings) -> list[tuple[str, str]]:
        """Source and target of every synchronization that carries the table."""
        return [
            pair.sites
            for pair in self.synchronizations.values()
            if any(each.table == table.table for each in self.replication_sets[pair.replication_set].tables)
        ]

    def announced_at(self, site: str) -> frozenset[str]:
        """The site's tables for whose commits some synchronization listens."""
        listening = (
            name
            for name, pair in self.synchronizations.items()
            if site in pair.sites and pair.watch is not None and pair.watch.listen
        )
        return frozenset(table.name for name in listening for table in self.tables(name))

    def snapshot(self, name: str) -> SnapshotDefinition:
        """The snapshot as its refreshes carry it. Raises KeyError for an unknown name."""
        settings = self.snapshots[name]
        incremental = settings.kind is SnapshotKind.INCREMENTAL
        return settings.definition(name, self._tracked(settings) if incremental else None)

    def replication(self, name: str) -> ReplicationDefinition:
        """The replication as its runs carry it. Raises KeyError for an unknown name."""
        settings = self.replications[name]
        return settings.definition(name, self.replication_sets[settings.replication_set])

    def _tracked(self, snapshot: SnapshotSettings) -> ReplicatedTable:
        """The source's table as its changes are captured there: for a replication set, or for snapshots alone."""
        for name, pair in self.synchronizations.items():
            if snapshot.source in pair.sites:
                for table in self.tables(name):
                    if table.at_site(snapshot.source) == snapshot.relation:
                        return table
        return captured_for_snapshots(snapshot.source, snapshot.relation)


def config_path() -> Path:
    """CONCORD_CONFIG, else config/concord.yaml of the working directory, else of the clone, else of AIRFLOW_HOME."""
    if chosen := os.environ.get("CONCORD_CONFIG"):
        return Path(chosen).expanduser()
    if _DEFAULT.exists():
        return _DEFAULT
    return (clone() or Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()) / _DEFAULT


def load(path: Path) -> Configuration:
    """Parse the file. Raises ConfigurationInvalid with every problem in it, in the order of its lines."""
    document = file.read(path)
    findings = [*document.findings, *(_mistakes(document) if document.readable else ())]
    if findings:
        raise ConfigurationInvalid(problems=_placed(findings, path, document))
    configuration = Configuration.model_validate(document.value)
    configuration._notices = _placed(notices(_valid_sections(document.value)), path, document)
    return configuration


def _placed(findings: Iterable[Finding], path: Path, document: file.Document) -> tuple[Problem, ...]:
    """Each once, in the order of their lines."""
    problems = {finding.problem(path.name, document.lines) for finding in findings}
    return tuple(sorted(problems, key=lambda problem: problem[1:]))


def json_schema() -> dict[str, Any]:
    """The JSON schema of the file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Configuration.model_json_schema()}


def _mistakes(document: file.Document) -> Iterator[Finding]:
    """Mistakes of the values and between them; what follows from an unusable value is left out."""
    hidden = dict(secrets(document.value))
    yield from (Finding(path, text) for path, text in hidden.items())
    unusable = document.unusable | hidden.keys()
    for finding in (*_of_values(document.value), *broken_rules(_valid_sections(document.value))):
        if not below_any(finding.path, unusable):
            yield finding


def _of_values(value: object) -> Iterator[Finding]:
    try:
        Configuration.model_validate(value)
    except ValidationError as error:
        for finding in schema.findings(error, Configuration):
            if finding.path or not isinstance(value, Mapping):
                yield finding


def _valid_sections(value: object) -> Sections:
    """The parts that are valid by themselves, so that the rules between them are checked all the same."""
    sites, sets = _written(value, "sites"), _written(value, "replication_sets")
    pairs, replications = _written(value, "synchronizations"), _written(value, "replications")
    valid_pairs = _valid(pairs, SynchronizationSettings)
    valid_replications = _valid(replications, ReplicationSettings)
    return Sections(
        _valid(sites, SiteSettings),
        _valid(sets, ReplicationSetSettings),
        valid_pairs,
        tuple(filter(is_name, sites)),
        tuple(filter(is_name, sets)),
        complete=len(valid_pairs) == len(pairs) and len(valid_replications) == len(replications),
        snapshots=_valid(_written(value, "snapshots"), SnapshotSettings),
        replications=valid_replications,
        retention=_valid({"retention": _written(value, "retention")}, Retention).get("retention"),
    )


def _written(value: object, section: str) -> Mapping[str, object]:
    written = value.get(section) if isinstance(value, Mapping) else None
    return written if isinstance(written, Mapping) else {}


def _valid(written: Mapping[str, object], part: type[Part]) -> dict[str, Part]:
    result = {}
    for name, value in written.items():
        try:
            result[name] = part.model_validate(value, extra="ignore")
        except ValidationError:
            continue
    return result
