"""Snapshots that cannot be provisioned, and those that are dropped (S4-008, S4-024, S4-026)."""

import pytest

from concord.databases import provisioning
from concord.databases.postgresql.snapshots.provision import drop
from concord.messages.errors import PrivilegeMissing, ProvisioningRefused, StructureChanged
from tests.given.site import APPLIER, READER
from tests.given.snapshot_sites import Copies

pytestmark = pytest.mark.spark


def refused(copies: Copies) -> str:
    with pytest.raises(ProvisioningRefused) as found:
        copies.provision()
    problems: tuple[str, ...] = found.value.problems  # type: ignore[assignment]
    assert all("\n" not in problem for problem in problems)
    return "\n".join(problems)


PLAIN = "CREATE TABLE copy (id int PRIMARY KEY, old text"


@pytest.mark.parametrize(
    ("kind", "table", "message", "prepare"),
    [
        ("any", "copy", "holds rows already", (f"{PLAIN})", "INSERT INTO copy VALUES (1, 'x')")),
        ("any", "copy", "has no column old", ("CREATE TABLE copy (id int PRIMARY KEY)",)),
        ("any", "copy", "column id is bigint, and integer at", ("CREATE TABLE copy (id bigint, old text)",)),
        ("incremental", "copy", "no immediate unique index on", ("CREATE TABLE copy (id int, old text)",)),
        ("any", "copy", "has the column more, which", (f"{PLAIN}, more int)",)),
        (
            "any",
            "copy",
            "has the foreign key",
            ("CREATE TABLE other (name text PRIMARY KEY)", f"{PLAIN} REFERENCES other)"),
        ),
        ("any", "reports.copy", "there is no schema reports; create it first", ()),
    ],
)
def test_an_existing_destination_that_does_not_fit_is_refused_in_one_line(
    copies: Copies, kind: str, table: str, message: str, prepare: tuple[str, ...]
) -> None:
    """S4-024."""
    copies.london.run("CREATE TABLE plain (id int PRIMARY KEY, old text)")
    copies.capetown.run(*prepare)
    where = table if "." in table else f"public.{table}"
    copies.define("plain", "non_incremental" if kind == "any" else kind, "public.plain", where)
    assert message in refused(copies)
    assert copies.capetown.value("SELECT to_regclass('concord.site')") is None


@pytest.mark.parametrize(
    ("kind", "source", "changed", "message"),
    [
        ("incremental", "public.keyless", {}, "has no primary key"),  # S4-009
        ("incremental", "public.a_view", {}, "is not a plain table"),  # S4-008
        ("non_incremental", "public.missing", {}, "does not exist"),
        ("non_incremental", "public.a_view", {"columns": ("idd",)}, "has no column idd"),
        ("non_incremental", "public.priced", {}, "does not round-trip exactly"),
        ("non_incremental", "public.flight", {"where": "colour = 'red'"}, "filters by colour"),
    ],
)
def test_a_source_that_cannot_be_copied_is_refused_in_one_line(
    copies: Copies, kind: str, source: str, changed: dict[str, object], message: str
) -> None:
    copies.london.run(
        "CREATE TABLE keyless (id int)",
        "CREATE VIEW a_view AS SELECT id FROM flight",
        "CREATE VIEW priced AS SELECT id, price::money FROM flight",
    )
    copies.define("copy", kind, source, "public.copy", **changed)
    assert message in refused(copies)


@pytest.mark.parametrize("with_table", [True, False])
def test_a_dropped_snapshot_leaves_nothing_behind_but_its_table_if_wanted(
    late: Copies, with_table: bool
) -> None:
    """S4-026, S4-017."""
    for site in late.sites:
        drop(site.credentials(site.superuser), site.name, "late", with_table=with_table)
    for site in late.sites:
        assert site.rows("TABLE concord.link_state") == []
        assert site.rows("TABLE concord.replicated_table") == []
        triggers = "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE '%concord%'"
        assert site.rows(triggers) == [("concord.conflict",)], "the ledger keeps its own"
    assert late.capetown.value("SELECT to_regclass('public.late') IS NULL") is with_table
    late.london.run("TRUNCATE flight")
    if not with_table:
        late.capetown.run("DELETE FROM late WHERE id = 6")
        assert late.capetown.value("SELECT count(*) FROM late") == 4


def test_a_table_that_a_view_depends_on_is_not_dropped(late: Copies) -> None:
    late.capetown.run("CREATE VIEW report AS SELECT * FROM late")
    with pytest.raises(StructureChanged, match=r"view public\.report depends on"):
        drop(late.capetown.credentials(late.capetown.superuser), "capetown", "late", with_table=True)
    assert late.refresh("late").unchanged == 0


def test_concord_is_removed_and_the_copy_stays(late: Copies) -> None:
    assert provisioning.check(late.installations()) == []
    provisioning.remove(late.installations())
    late.capetown.run("DELETE FROM late WHERE id = 6")
    assert late.capetown.value("SELECT count(*) FROM late") == 4


#: Site, login, right and table.
NEEDED = [
    ("london", READER, "SELECT", "flight"),
    ("capetown", READER, "SELECT", "late"),
    *(("capetown", APPLIER, right, "late") for right in ("SELECT", "INSERT", "UPDATE", "DELETE")),
    ("capetown", APPLIER, "INSERT", "conflict"),
]


def test_a_grant_that_a_refresh_needs_is_named_by_the_check_and_stops_it_before_it_writes(
    late: Copies,
) -> None:
    for needed in NEEDED:
        assert_it_stops_until_provision_grants(late, *needed)


def assert_it_stops_until_provision_grants(
    late: Copies, site: str, login: str, right: str, table: str
) -> None:
    schema = "concord" if table == "conflict" else "public"
    (where,) = (each for each in late.sites if each.name == site)
    where.run(f"REVOKE {right} ON {schema}.{table} FROM {login}")
    line = (
        f"{site}: the login {login} lacks {right} on table {schema}.{table};"
        f' GRANT {right} ON TABLE "{schema}"."{table}" TO "{login}"'
    )
    assert provisioning.check(late.installations()) == [line]
    before = [each.stored for each in late.sites]
    for plan_only in (True, False):
        with pytest.raises(PrivilegeMissing) as raised:
            late.refresh("late", plan_only=plan_only)
        assert raised.value.message.splitlines()[0] == line
    assert [each.stored for each in late.sites] == before
    late.provision()
    assert provisioning.check(late.installations()) == []
    late.refresh("late")
