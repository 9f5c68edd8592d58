"""Old versions of a history go, and it still tells how each row was at any moment within what is kept (S0-50)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concord.databases import provisioning
from concord.databases.postgresql.replication import kept_versions
from concord.databases.registry import dialect
from concord.jobs.kept_history import KeptHistory
from concord.messages.errors import StructureChanged
from concord.values.identifier import parse_table_name
from tests.given.replicated_accounts import Make
from tests.given.replicated_history import histories, versions
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLIER

NAME = parse_table_name("reports.account_history")
NOW = datetime(2026, 11, 1, tzinfo=UTC)
KEEP = timedelta(days=30)
KEPT = KeptHistory(keep=KEEP)


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return histories(replicated, kept={"public.account": KEPT})


def put(sites: Replicated, key: int, *made: tuple[str, int]) -> None:
    """Versions of a key: each with its operation, and how many days ago it was committed."""
    for version, (operation, days) in enumerate(made, 1):
        at = NOW - timedelta(days=days)
        sites.capetown.run(
            f"INSERT INTO reports.account_history VALUES ({key}, 'Ann', {version}, {version}, '{operation}', '{at}', 1)"
        )


def forget(sites: Replicated, *, dry_run: bool = False) -> int:
    return dialect("postgresql").replications.forget_versions(
        sites.capetown.access, NAME, KEPT, NOW, dry_run=dry_run
    )


def left(sites: Replicated) -> list[tuple[int, int]]:
    return [(key, version) for key, version, *_ in versions(sites)]


def as_of(sites: Replicated, days: int) -> Sequence[tuple[Any, ...]]:
    """The table at that moment, as docs/change-history.md asks for it."""
    at = NOW - timedelta(days=days)
    return sites.capetown.rows(
        "SELECT id, version FROM (SELECT DISTINCT ON (id) * FROM reports.account_history"
        f" WHERE committed_at <= '{at}' ORDER BY id, version DESC) t WHERE operation <> 'D' ORDER BY id"
    )


def test_versions_go_that_another_one_has_followed_for_as_long_as_they_are_kept(sites: Replicated) -> None:
    """The newest version of a row that lives stays, however old it is."""
    put(sites, 1, ("I", 90), ("U", 60), ("U", 10))
    put(sites, 2, ("I", 400))
    assert (forget(sites, dry_run=True), len(left(sites))) == (1, 4)
    assert forget(sites) == 1
    assert left(sites) == [(1, 2), (1, 3), (2, 1)]
    assert forget(sites) == 0


def test_a_row_that_was_deleted_long_ago_goes_whole_and_never_comes_to_life_in_between(
    sites: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_versions, "BATCH", 2)
    put(sites, 1, ("I", 90), ("U", 80), ("U", 70), ("U", 60), ("D", 50))
    put(sites, 2, ("I", 90), ("D", 10))
    seen = list[Sequence[tuple[Any, ...]]]()
    delete = kept_versions._delete

    def watched(*how: Any) -> int:
        deleted = delete(*how)
        seen.append(as_of(sites, days=0))
        return deleted

    monkeypatch.setattr(kept_versions, "_delete", watched)
    assert forget(sites) == 5
    assert left(sites) == [(2, 1), (2, 2)]
    assert seen == [[], []]


def test_a_row_that_comes_back_after_its_history_went_counts_from_one(sites: Replicated) -> None:
    sites.initialize()
    put(sites, 1, ("I", 90), ("D", 50))
    forget(sites)
    sites.london.run("INSERT INTO account VALUES (1, 'Bob', 2)")
    sites.run()
    assert versions(sites) == [(1, 1, "I", "Bob", 2)]


@pytest.mark.parametrize(
    ("altered", "message"),
    [
        ("DROP CONSTRAINT account_history_pkey", "no primary key with version in it"),
        (
            "DROP CONSTRAINT account_history_pkey, ADD PRIMARY KEY (entry, version)",
            "entry in its primary key; make it the table's key and version alone",
        ),
        ("RENAME committed_at TO at", "lacks the column committed_at of a history"),
    ],
)
def test_nothing_goes_of_a_table_that_somebody_made_other_than_a_history(
    sites: Replicated, altered: str, message: str
) -> None:
    """By another key, versions of different rows would follow each other."""
    put(sites, 1, ("I", 90))
    put(sites, 2, ("I", 90), ("U", 60))
    sites.capetown.run(
        "UPDATE reports.account_history SET entry = id WHERE version = 1",
        f"ALTER TABLE reports.account_history {altered}",
    )
    with pytest.raises(StructureChanged, match=message):
        forget(sites)
    assert len(left(sites)) == 3


made = st.lists(st.tuples(st.sampled_from("IUD"), st.integers(0, 60)), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(made, min_size=1, max_size=3))
def test_any_moment_within_what_is_kept_is_always_told_as_before(
    sites: Replicated, rows: list[list[tuple[str, int]]]
) -> None:
    sites.capetown.run("TRUNCATE reports.account_history")
    for key, each in enumerate(rows, 1):
        days = sorted((days for _, days in each), reverse=True)
        put(sites, key, *zip((operation for operation, _ in each), days, strict=True))
    moments = range(31)
    before = [as_of(sites, days) for days in moments]
    assert forget(sites, dry_run=True) == forget(sites)
    assert [as_of(sites, days) for days in moments] == before
    assert forget(sites) == 0


def test_the_applier_may_delete_only_where_old_versions_go(sites: Replicated) -> None:
    """S0-43: `provision` says so where `keep` was added, and gives it."""
    right = f"SELECT has_table_privilege('{APPLIER}', 'reports.account_history', 'DELETE')"
    assert sites.capetown.value(right) is True
    sites.capetown.run(f"REVOKE DELETE ON reports.account_history FROM {APPLIER}")
    assert any("reports.account_history" in line for line in provisioning.check(sites.installations()))


def test_a_trigger_for_deletes_fires_and_one_for_inserts_stays_silent(sites: Replicated) -> None:
    """S0-17: new versions are replayed in silence; a purge is a delete as any other."""
    sites.initialize()
    sites.capetown.run(
        "CREATE TABLE seen (what text)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$BEGIN INSERT INTO public.seen VALUES (TG_OP); RETURN coalesce(OLD, NEW); END$$",
        "CREATE TRIGGER note BEFORE INSERT OR DELETE ON reports.account_history FOR EACH ROW EXECUTE FUNCTION note()",
    )
    sites.london.run("INSERT INTO account VALUES (9, 'Bob', 2)")
    sites.run()
    assert sites.capetown.rows("TABLE seen") == []
    put(sites, 1, ("I", 90), ("U", 60))
    sites.capetown.run("TRUNCATE seen")
    assert forget(sites) == 1
    assert sites.capetown.rows("TABLE seen") == [("DELETE",)]
