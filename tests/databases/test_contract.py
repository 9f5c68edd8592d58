"""A database may lack optional members of the contract; whoever asks for one is told so in one sentence."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from concord.databases import registry
from concord.databases.contract.capabilities import CAPABILITIES, lacks
from concord.databases.contract.dialect import MEMBERS, Dialect
from concord.databases.registry import dialect, dialect_of_all
from concord.jobs.site import Credentials, SiteAccess
from concord.jobs.upkeep import CarryingSite
from concord.messages.errors import CapabilityMissing, ConnectionRefused, from_code
from tests.conftest import PROJECT
from tests.given.dialects import with_members

NOWHERE = Credentials(host="127.0.0.1", port=1, database="nowhere", user="nobody")
NAMES_NONE = ("plugins/concord", "spark_jobs", "dags", "demo", "benchmarks", "embedded", "compose")
A_LINK = """
import sys
from concord.databases.registry import dialect

one = dialect("postgresql")
one.source, one.target, one.between
print(*sys.modules)
"""
#: The demo makes PostgreSQL servers and counts their rows itself; that benchmark disables PostgreSQL's triggers.
MAY = ("plugins/concord/databases/", "demo/", "benchmarks/damage.py")


def lake() -> Dialect:
    """A database that has all that every database must have, and no more."""
    whole = dialect("postgresql")
    for each in CAPABILITIES:
        whole = without(whole, each.member)
    return with_members(whole, name="Lake")


def without(whole: Dialect, member: str) -> Dialect:
    first, _, part = member.partition(".")
    lacking: Any = lacks("Lake", member)
    return with_members(
        whole, **{first: replace(getattr(whole, first), **{part: lacking}) if part else lacking}
    )


@pytest.fixture(autouse=True)
def two_databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.DIALECTS, "lake", lake)
    yield
    registry.IMPORTED.pop("lake", None)


def site(name: str, kind: str) -> SiteAccess:
    return SiteAccess(name=name, dialect=kind, reader=NOWHERE, applier=NOWHERE)


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda each: each.member)
def test_what_a_database_lacks_says_so_and_what_to_do_whoever_calls_it(capability: Any) -> None:
    asked = attrgetter(capability.member)(dialect("lake"))
    with pytest.raises(CapabilityMissing) as said:
        asked("of", some="thing")
    assert str(said.value) == f"Concord has no {capability.name} for Lake; {capability.instead}"
    assert not dialect("lake").offers(capability.member)
    assert dialect("postgresql").offers(capability.member)


def test_the_error_is_the_same_behind_a_process_boundary() -> None:
    with pytest.raises(CapabilityMissing) as said:
        dialect("lake").upkeep.clean([], dry_run=True, now_us=0, min_age_us=0)
    assert isinstance(from_code(said.value.code, said.value.message), CapabilityMissing)
    assert not said.value.transient


def test_what_every_database_must_have_cannot_be_lacked() -> None:
    for member in ("source", "status", "upkeep.forget", "waiting.drop"):
        assert dialect("lake").offers(member)
        with pytest.raises(KeyError):
            lacks("Lake", member)


def test_a_database_that_nobody_knows_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ConnectionRefused, match="excel is not supported; supported: postgresql, lake"):
        dialect("excel")


def test_what_sites_do_together_needs_one_kind_of_database() -> None:
    assert dialect_of_all([site("london", "lake"), site("rome", "lake")]).name == "Lake"
    with pytest.raises(
        CapabilityMissing, match="london is postgresql, rome is lake: this needs sites of one kind"
    ):
        dialect_of_all([site("london", "postgresql"), site("rome", "lake")])


def test_a_cleanup_at_a_site_without_one_says_so() -> None:
    sites = [CarryingSite(site("rome", "lake"), {}, ())]
    with pytest.raises(CapabilityMissing, match="no cleanup of tombstones for Lake; let them stay"):
        dialect_of_all(each.access for each in sites).upkeep.clean(
            sites, dry_run=True, now_us=0, min_age_us=0
        )


def test_a_database_is_imported_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def opened() -> Dialect:
        asked.append("pond")
        return lake()

    monkeypatch.setitem(registry.DIALECTS, "pond", opened)
    with suppress(ConnectionRefused):
        dialect("excel")
    registry.cancel_all()
    assert asked == []
    assert dialect("pond") is dialect("pond")
    assert asked == ["pond"]
    del registry.IMPORTED["pond"]


def test_a_link_imports_nothing_of_a_comparison_or_a_first_load() -> None:
    rooms = subprocess.run([sys.executable, "-c", A_LINK], capture_output=True, text=True, check=True).stdout
    assert "concord.databases.postgresql.write.relay" in rooms
    for room in ("compare", "initialize", "provision", "snapshots", "upkeep"):
        assert f"concord.databases.postgresql.{room}" not in rooms


def test_every_member_of_the_contract_is_filled_by_postgresql() -> None:
    for member in MEMBERS:
        value = getattr(dialect("postgresql"), member)
        assert value is not None, member
        if is_dataclass(value) and not isinstance(value, type):
            assert all(getattr(value, each.name) is not None for each in fields(value)), member


def test_nothing_outside_of_databases_names_a_database_s_package() -> None:
    found = [
        str(file.relative_to(PROJECT))
        for part in NAMES_NONE
        for file in Path(PROJECT, part).rglob("*.py")
        if "import concord.databases.postgresql" in (text := file.read_text())
        or "from concord.databases.postgresql" in text
    ]
    assert [each for each in found if not each.startswith(MAY)] == []
    assert any(each.startswith(MAY[0]) for each in found), "it looks where it should"
