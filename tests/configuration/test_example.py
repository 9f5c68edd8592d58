"""The example that the demo runs is read exactly, from its place, into values that nobody changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import time, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from concord.configuration.configuration import (
    Configuration,
    PurgeSchedule,
    ReplicationSetSettings,
    Retention,
    SiteSettings,
    SynchronizationSettings,
    TableSettings,
    config_path,
    load,
)
from concord.configuration.watch import WatchSettings
from concord.rules.policy import Policy
from concord.tables.replication_set import ReplicatedTable, TableName
from tests.configuration.examples import VALID

PROJECT = Path(__file__).parents[2]
DAY = timedelta(days=1)
Parse = Callable[[str | bytes], Configuration]


def test_the_example_is_read_exactly() -> None:
    names = ("airlines", "airports", "planes", "flights", "weather")
    assert load(PROJECT / "config/concord.yaml") == Configuration(
        sites={
            "london": SiteSettings(connection="london", reader="london_reader", applier="london_applier"),
            "capetown": SiteSettings(
                connection="capetown", reader="capetown_reader", applier="capetown_applier"
            ),
        },
        replication_sets={
            "flight_operations": ReplicationSetSettings(
                tables=tuple(
                    TableSettings(table=TableName(schema_name="public", name=name)) for name in names
                )
            )
        },
        synchronizations={
            "london_capetown": SynchronizationSettings(
                replication_set="flight_operations",
                source="london",
                target="capetown",
                schedule="*/5 * * * *",
                watch=WatchSettings(),
                resolvers=("latest_timestamp",),
                tombstone_retention=14 * DAY,
            )
        },
        retention=Retention(purge_schedule=PurgeSchedule(time=time(3, 0))),
    )


def test_what_is_left_out_has_the_documented_default(parse: Parse) -> None:
    configuration = parse(VALID)
    london = configuration.sites["london"]
    assert {london.reader_connection, london.applier_connection, london.installer_connection} == {"london"}
    assert (london.priority, london.max_clock_skew, london.insecure, london.readers) == (
        0,
        timedelta(minutes=1),
        False,
        2,
    )
    kept = configuration.retention
    assert (kept.conflicts, kept.runs, kept.transmissions, kept.staging) == (
        30 * DAY,
        90 * DAY,
        90 * DAY,
        DAY,
    )
    assert kept.purge_schedule.cron == "0 3 * * *"


def test_every_role_may_have_a_connection_of_its_own(parse: Parse) -> None:
    roles = "{connection: london, reader: london_r, applier: london_a, installer: london_i}"
    london = parse(VALID.replace("{connection: london}", roles)).sites["london"]
    assert london.reader_connection == "london_r"
    assert london.applier_connection == "london_a"
    assert london.installer_connection == "london_i"
    assert london.connections == {"london", "london_r", "london_a", "london_i"}


def test_a_link_gets_its_tables_with_names_keys_and_resolvers(parse: Parse) -> None:
    flights, airlines = parse(VALID).tables("london_capetown")
    public_flights = TableName(schema_name="public", name="flights")
    assert flights == ReplicatedTable(
        table=public_flights,
        at={"capetown": TableName(schema_name="ops", name="flights")},
        policy=Policy(resolvers=("latest_timestamp",)),
    )
    assert airlines.key == ("carrier",)


def test_parsed_values_cannot_be_changed(parse: Parse) -> None:
    configuration = parse(VALID)
    with pytest.raises(ValidationError):
        configuration.sites = {}
    with pytest.raises(TypeError):
        configuration.sites["paris"] = configuration.sites["london"]  # type: ignore[index]
    with pytest.raises(ValidationError):
        configuration.sites["london"].priority = 9


def test_values_built_in_python_are_held_to_the_same_rules(parse: Parse) -> None:
    valid = parse(VALID)
    unknown = SynchronizationSettings(replication_set="flight_operations", source="london", target="paris")
    with pytest.raises(ValidationError, match="unknown site 'paris'"):
        Configuration(
            sites=valid.sites,
            replication_sets=valid.replication_sets,
            synchronizations={"london_paris": unknown},
        )


def test_the_environment_names_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONCORD_CONFIG", str(tmp_path / "other.yaml"))
    assert config_path() == tmp_path / "other.yaml"


def test_without_it_the_working_directory_has_the_file_or_else_the_project(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CONCORD_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    assert config_path() == PROJECT / "config/concord.yaml"
    (tmp_path / "config").mkdir()
    (tmp_path / "config/concord.yaml").write_text(VALID)
    assert config_path().resolve() == (tmp_path / "config/concord.yaml").resolve()
