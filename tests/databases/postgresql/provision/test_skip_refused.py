"""Refused tables are left out where a person says so, and the others are provisioned; a refused site stops all."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from concord.configuration.snapshot import captured_for_snapshots
from concord.databases import provisioning
from concord.databases.postgresql.facts.own_schema import FORMAT
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.provisioning import Installation
from concord.jobs.replication import ReplicationDefinition
from concord.jobs.snapshot import SnapshotDefinition, SnapshotKind
from concord.messages.errors import ProvisioningRefused, TablesStopped
from concord.tables.identity import Identity
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from embedded.postgres import Server
from tests.databases.postgresql.installers import new_installer, new_role
from tests.given.bare_sites import Bare
from tests.given.site import LOG_READER, Site
from tests.given.two_sites import Pair

TABLES = (
    "CREATE TABLE good (id int PRIMARY KEY, note text)",
    "CREATE TABLE bad (id int PRIMARY KEY, note text)",
    "CREATE TABLE child (id int PRIMARY KEY, bad int REFERENCES bad)",
    "CREATE TABLE grandchild (id int PRIMARY KEY, child int REFERENCES child)",
)
NAMES = ("good", "bad", "child", "grandchild")


def table(name: str) -> ReplicatedTable:
    return ReplicatedTable(table=parse_table_name(f"public.{name}"))


EVERY = [table(name) for name in NAMES]


@pytest.fixture
def bare(sites: Bare) -> Iterator[Bare]:
    sites.run(*TABLES)
    yield sites
    for site in sites.sites:
        site.drop_slots()


def spoil(site: Site) -> None:
    """Give the table what has it refused."""
    site.run("ALTER TABLE bad ENABLE ROW LEVEL SECURITY")


def provisioned(site: Site) -> set[str]:
    """The site's tables with a trigger of Concord's."""
    found = site.rows("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE 'zz\\_concord\\_%'")
    return {name for (name,) in found if "." not in name}


def refused(installations: Sequence[Installation]) -> str:
    with pytest.raises(ProvisioningRefused) as error:
        provisioning.accepted(installations)
    return error.value.message


def nothing_is_written(bare: Bare) -> bool:
    return all(site.value("SELECT to_regnamespace('concord')") is None for site in bare.sites)


def test_a_table_refused_at_one_site_is_left_out_at_both_with_what_refers_to_it(bare: Bare) -> None:
    spoil(bare.capetown)
    accepted = provisioning.accepted(bare.installations(EVERY))
    assert accepted.tables == ["public.bad", "public.child", "public.grandchild"]
    assert [each.tables for each in accepted.refusals][:1] == [("public.bad",)]
    assert {name for each in accepted.refusals for name in each.tables} == set(accepted.tables)
    assert nothing_is_written(bare)
    provisioning.provision(accepted.installations)
    assert [provisioned(site) for site in bare.sites] == [{"good"}, {"good"}]
    assert provisioning.check(accepted.installations) == []


def test_nothing_is_left_out_where_nothing_is_refused(bare: Bare) -> None:
    accepted = provisioning.accepted(bare.installations(EVERY))
    assert (accepted.tables, accepted.snapshots, accepted.refusals) == ([], [], [])
    assert accepted.installations == bare.installations(EVERY)


def test_a_run_says_what_to_do_with_a_table_that_was_left_out_and_carries_the_others(
    bare: Bare, request: pytest.FixtureRequest
) -> None:
    spoil(bare.london)
    bare.run("INSERT INTO good VALUES (1, 'one')")
    accepted = provisioning.accepted(bare.installations(EVERY))
    provisioning.provision(accepted.installations)
    spark: Callable[[], object] = lambda: request.getfixturevalue("spark")  # noqa: E731
    some = Pair(bare.london, bare.capetown, (EVERY[0],), spark)  # type: ignore[arg-type]
    declare_equal(some.job())
    bare.london.run("UPDATE good SET note = 'two'")
    whole = Pair(bare.london, bare.capetown, tuple(EVERY), spark)  # type: ignore[arg-type]
    report = whole.run()
    assert report.error_code == TablesStopped.code
    assert set(report.stopped) == {"public.bad", "public.child", "public.grandchild"}
    said = (
        "public.bad is not provisioned; run `provision`. If that refuses it, take it out of the configuration"
    )
    assert said in report.stopped["public.bad"]
    assert bare.capetown.rows("TABLE good") == [(1, "two")]


def test_a_site_that_is_refused_as_a_whole_stops_everything(bare: Bare) -> None:
    spoil(bare.london)
    said = refused(bare.installations(EVERY, reader="nobody"))
    assert "there is no login nobody" in said
    assert "public.bad has row-level security" in said
    assert "public.child" not in said, "it is refused for what was left out, and nothing is"
    assert nothing_is_written(bare)


def test_a_right_that_the_installer_lacks_stops_everything(bare: Bare, server_with_logins: Server) -> None:
    spoil(bare.london)
    installer = new_installer(server_with_logins)
    wanted = [
        replace(each, installer=site.credentials(installer))
        for each, site in zip(bare.installations(EVERY), bare.sites, strict=True)
    ]
    said = refused(wanted)
    assert f"london: {installer} cannot make the role" in said
    assert "public.child refers to" not in said


def test_tables_of_which_none_is_left_are_refused(bare: Bare) -> None:
    spoil(bare.london)
    assert "public.bad has row-level security" in refused(bare.installations([table("bad")]))


def test_a_superusers_table_is_left_out_and_its_sequence_is_no_other_table(
    bare: Bare, server_with_logins: Server
) -> None:
    installer, owner = new_installer(server_with_logins), new_role(server_with_logins)
    bare.run("CREATE TABLE numbered (id serial PRIMARY KEY)")
    for site in bare.sites:
        site.run(
            f"ALTER TABLE good OWNER TO {owner}",
            f"ALTER TABLE numbered OWNER TO {owner}",
            "ALTER SEQUENCE numbered_id_seq OWNED BY NONE",
            f"ALTER SEQUENCE numbered_id_seq OWNER TO {site.superuser}",
        )
    tables = [table("good"), table("bad"), table("numbered")]
    wanted = [
        replace(each, installer=site.credentials(installer))
        for each, site in zip(bare.installations(tables), bare.sites, strict=True)
    ]
    assert "belongs to the superuser" in refused(wanted), "the installer lacks rights as well"
    smaller = [
        replace(each, installer=site.credentials(installer))
        for each, site in zip(bare.installations([table("good")]), bare.sites, strict=True)
    ]
    for (_, script), site in zip(list(provisioning.sql(smaller)), bare.sites, strict=True):
        site.run(script)
    accepted = provisioning.accepted(wanted)
    assert accepted.tables == ["public.bad", "public.numbered"]
    provisioning.provision(accepted.installations)


def test_a_table_whose_sequence_cannot_be_shared_is_left_out(bare: Bare) -> None:
    bare.run(
        "CREATE TABLE numbered (id serial PRIMARY KEY)", "ALTER SEQUENCE numbered_id_seq INCREMENT BY -1"
    )
    shares = Identity(slots=2, slot={"london": 1, "capetown": 2})
    accepted = provisioning.accepted(bare.installations([table("numbered").sharing(shares), table("good")]))
    assert accepted.tables == ["public.numbered"]


def test_a_table_that_differs_between_the_sites_is_left_out(bare: Bare) -> None:
    bare.london.run("ALTER TABLE good ADD more int")
    assert provisioning.accepted(bare.installations(EVERY)).tables == ["public.good"]


def test_a_table_that_is_provisioned_keeps_its_triggers_when_it_is_left_out(bare: Bare) -> None:
    provisioning.provision(bare.installations(EVERY[:2]))
    spoil(bare.london)
    accepted = provisioning.accepted(bare.installations(EVERY[:2]))
    assert accepted.tables == ["public.bad"]
    provisioning.provision(accepted.installations)
    assert [provisioned(site) for site in bare.sites] == [{"good", "bad"}] * 2
    bare.london.run("ALTER TABLE bad DISABLE ROW LEVEL SECURITY")
    assert provisioning.check(bare.installations(EVERY[:2])) == []


def test_after_an_upgrade_a_table_does_not_keep_the_triggers_of_an_older_concord(bare: Bare) -> None:
    provisioning.provision(bare.installations(EVERY[:2]))
    spoil(bare.london)
    bare.london.run("UPDATE concord.site SET format = format - 1")
    said = refused(bare.installations(EVERY[:2]))
    assert (
        "london: public.bad is provisioned, and leaving it out would end the capture of its changes" in said
    )
    assert bare.london.value("SELECT format FROM concord.site") < FORMAT


def test_a_table_is_not_left_out_where_that_would_end_its_capture_by_the_log(bare: Bare) -> None:
    tables = [each.told_by_log(["london"]) for each in EVERY[:2]]
    wanted = [
        replace(
            bare.installations(tables)[0],
            log_reader=LOG_READER,
            reads_log=bare.london.credentials(LOG_READER),
        ),
        bare.installations(tables)[1],
    ]
    provisioning.provision(wanted)
    spoil(bare.london)
    said = refused(wanted)
    assert (
        "london: public.bad is provisioned, and leaving it out would end the capture of its changes" in said
    )
    published = "SELECT tablename FROM pg_publication_tables WHERE pubname = 'concordcapture' ORDER BY 1"
    assert bare.london.rows(published) == [("bad",), ("good",)]


def replicated(bare: Bare, *names: str) -> list[Installation]:
    definition = ReplicationDefinition(
        name="replayed",
        replication_set="every",
        publisher="london",
        subscriber="capetown",
        tables=tuple(map(table, names)),
    )
    wanted = bare.installations([table("good")], replications=(definition,), log_reader=LOG_READER)
    return [replace(each, tables=()) for each in wanted]


def test_a_table_of_a_replication_is_left_out_before_it_is_published_and_never_after(bare: Bare) -> None:
    spoil(bare.capetown)
    accepted = provisioning.accepted(replicated(bare, "good", "bad"))
    assert accepted.tables == ["public.bad"]
    provisioning.provision(accepted.installations)
    assert bare.london.rows("SELECT tablename FROM pg_publication_tables") == [("good",)]
    bare.capetown.run("ALTER TABLE bad DISABLE ROW LEVEL SECURITY")
    provisioning.provision(replicated(bare, "good", "bad"))
    spoil(bare.capetown)
    assert "leaving it out would end the capture of its changes" in refused(replicated(bare, "good", "bad"))


def copied(bare: Bare, kind: SnapshotKind) -> list[Installation]:
    source = table("good")
    incremental = kind is SnapshotKind.INCREMENTAL
    tracked = captured_for_snapshots("london", source.table) if incremental else None
    copies = tuple(
        SnapshotDefinition(
            name=name,
            kind=kind,
            source="london",
            target="capetown",
            relation=source.table,
            table=parse_table_name(destination),
            tracked=tracked,
        )
        for name, destination in (("refused", "nowhere.copy"), ("taken", "public.copy"))
    )
    tables = {"london": (tracked,) if tracked else (), "capetown": ()}
    return [
        replace(each, tables=tables[each.site]) for each in bare.installations([source], snapshots=copies)
    ]


@pytest.mark.parametrize("kind", SnapshotKind)
def test_a_refused_snapshot_is_left_out_alone(bare: Bare, kind: SnapshotKind) -> None:
    accepted = provisioning.accepted(copied(bare, kind))
    assert (accepted.tables, accepted.snapshots) == ([], ["refused"])
    provisioning.provision(accepted.installations)
    assert bare.capetown.rows("SELECT name FROM concord.snapshot") == [("taken",)]
    assert provisioning.check(accepted.installations) == []


def test_with_its_source_an_incremental_snapshot_is_left_out_at_both_sites(bare: Bare) -> None:
    bare.london.run("ALTER TABLE good DROP CONSTRAINT good_pkey")
    wanted = copied(bare, SnapshotKind.INCREMENTAL)
    every = [replace(each, tables=(*each.tables, table("bad"))) for each in wanted]
    accepted = provisioning.accepted(every)
    assert (accepted.tables, accepted.snapshots) == ([], ["refused", "taken"])
    provisioning.provision(accepted.installations)
    assert [provisioned(site) for site in bare.sites] == [{"bad"}, {"bad"}]


def test_a_source_whose_only_snapshot_is_refused_is_not_captured(bare: Bare) -> None:
    wanted = copied(bare, SnapshotKind.INCREMENTAL)
    every = [
        replace(each, snapshots=each.snapshots[:1], tables=(*each.tables, table("bad"))) for each in wanted
    ]
    accepted = provisioning.accepted(every)
    assert accepted.snapshots == ["refused"]
    provisioning.provision(accepted.installations)
    assert [provisioned(site) for site in bare.sites] == [{"bad"}, {"bad"}]
