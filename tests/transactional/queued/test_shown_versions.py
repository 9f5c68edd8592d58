"""Versions of rows as people and their tools see them: as a UUID, or in a column of the table's own."""

import uuid
from collections.abc import Callable

import psycopg
import pytest

from concord.configuration.configuration import Configuration
from concord.databases import provisioning
from concord.messages.errors import Problem, ProvisioningRefused
from tests.given.configured_replications import BASE, BOOKINGS, section
from tests.given.queued_preferences import preferences, settle
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import READER

Parse = Callable[[str | bytes], Configuration]
Problems = Callable[[str | bytes], tuple[Problem, ...]]

VERSION = "SELECT concord.row_version('public.preference', '5')"
CUSTOMER = (
    'CREATE TABLE customer (id int PRIMARY KEY, name text, "row ""guid" varchar(36), size numeric, kept bigint'
    " GENERATED ALWAYS AS (id + 1) STORED)"
)
COLUMN = {"public.customer": 'row "guid'}
GUIDS = 'SELECT id, "row ""guid" FROM customer ORDER BY 1'
OURS = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zzz_concord_version_%'"


def test_a_rows_version_is_a_uuid_that_both_sites_show_alike_and_each_update_changes(
    replicated: Make,
) -> None:
    """S3-01, S3-10: the reader may ask; a row that never was has none, and a deleted one has."""
    sites = preferences(replicated)
    assert sites.london.value(VERSION.replace("5", "11")) is None
    found = {sites.london.value(VERSION)}
    for change in (
        "UPDATE preference SET size = 50",
        "UPDATE preference SET size = 5",
        "DELETE FROM preference",
    ):
        sites.london.run(f"{change} WHERE person = 5")
        settle(sites)
        one, other = (site.value(VERSION) for site in sites.sites)
        assert (one, one.version) == (other, 8)
        found.add(one)
    assert len(found) == 4
    with sites.london.log_in(READER) as reader:
        [(seen,)] = reader.execute(VERSION).fetchall()
    assert seen in found
    with pytest.raises(
        psycopg.errors.RaiseException, match=r"no table public.preference with a key of 2 columns"
    ):
        sites.london.value("SELECT concord.row_version('public.preference', '5', '6')")


@pytest.fixture
def customers(replicated: Make) -> Replicated:
    """Of which one has a version of its application's."""
    made = replicated((CUSTOMER,), "public.customer", updates="queued", version_column=COLUMN)
    made.london.run(
        "INSERT INTO customer (id, name) SELECT n, 'name ' || n FROM generate_series(1, 5) n",
        "INSERT INTO customer VALUES (6, 'six', 'its own', 1)",
    )
    made.initialize_both_ways()
    return made


def test_each_write_of_a_user_leaves_another_uuid_in_the_version_column(customers: Replicated) -> None:
    """S3-02, S4-148: also an update of nothing else, or of this very column. An insert may bring its own."""
    first = dict(customers.london.rows(GUIDS))
    assert first.pop(6) == "its own"
    assert len({uuid.UUID(each) for each in first.values()}) == 5
    customers.london.run(
        "UPDATE customer SET name = 'new' WHERE id = 1",
        "UPDATE customer SET name = name WHERE id = 2",
        """UPDATE customer SET "row ""guid" = 'mine' WHERE id = 3""",
    )
    second = dict(customers.london.rows(GUIDS))
    assert [each for each in first if first[each] == second[each]] == [4, 5]
    assert len({uuid.UUID(second[each]) for each in first}) == 5


def test_the_version_column_travels_and_no_replay_alters_it(customers: Replicated) -> None:
    """S4-146, S4-149: equal values are the same version at both sites, after a conflict as well."""
    customers.london.run(
        "UPDATE customer SET size = 1 WHERE id IN (1, 5)", "INSERT INTO customer VALUES (7, 'seven')"
    )
    customers.capetown.run(
        *(f"UPDATE customer SET size = 2 WHERE id = {each}" for each in (2, 5)),
        "DELETE FROM customer WHERE id = 3",
    )
    at_london, at_capetown = (dict(site.rows(GUIDS)) for site in customers.sites)
    settle(customers)
    one, other = (dict(site.rows(GUIDS)) for site in customers.sites)
    assert one == other
    assert (one[1], one[7], one[5]) == (at_london[1], at_london[7], at_london[5])
    assert one[2] == at_capetown[2] != at_london[2]
    assert customers.are_equal()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("rowguid int", "has the column rowguid of type integer; a version column is uuid, text or varchar"),
        ("rowguid varchar(35)", r"of type character varying\(35\); a version column is"),
        ("rowguid timestamp(0)", r"of type timestamp\(0\) without time zone; a version column is"),
        ("rowguid uuid[]", r"of type uuid\[\]; a version column is"),
        ("rowguid uuid GENERATED ALWAYS AS (NULL) STORED", "of type uuid; a version column is"),
        ("other uuid", "public.t has no column rowguid; add it as uuid"),
        ("rowguid uuid, PRIMARY KEY (id, rowguid)", "has rowguid in its key, which would change"),
    ],
)
def test_a_column_that_cannot_hold_versions_is_refused_by_provision(
    replicated: Make, column: str, said: str
) -> None:
    """S4-147: type and width of a column that is there. S0-20: a clock of whole seconds tells no two changes apart."""
    key = "" if "KEY" in column else ", PRIMARY KEY (id)"
    made = replicated((f"CREATE TABLE t (id int, {column}{key})",), "public.t", updates="queued")
    made.settings = {"updates": "queued", "version_column": {"public.t": "rowguid"}}
    with pytest.raises(ProvisioningRefused, match=said) as refused:
        made.provision()
    assert refused.value.message.count("london") == 1


def test_provision_makes_the_triggers_finds_one_that_is_gone_and_takes_them_away(
    customers: Replicated,
) -> None:
    """S4-147: at both sites; nothing of it is left where the configuration names no column any more."""
    assert lacked(customers) == []
    customers.capetown.run("ALTER TABLE customer DISABLE TRIGGER zzz_concord_version_update")
    [line] = lacked(customers)
    assert line.startswith('capetown: public.customer lacks a trigger of its version column row "guid')
    customers.provision()
    before = dict(customers.capetown.rows(GUIDS))
    customers.capetown.run("UPDATE customer SET size = 0")
    assert not set(before.items()) & set(customers.capetown.rows(GUIDS))
    assert [site.value(OURS) for site in customers.sites] == [2, 2]
    customers.settings = {"updates": "queued"}
    customers.provision()
    assert [site.value(OURS) for site in customers.sites] == [0, 0]
    settle(customers)
    assert customers.are_equal()


def test_the_configuration_names_a_column_by_its_table(parse: Parse, problems: Problems) -> None:
    """S4-147: of a table of the set, and where updates are queued."""
    both = BASE.replace("connection: capetown", "connection: capetown\n    log_reader: cape_log", 1)
    queued = BOOKINGS | {"updates": "queued", "version_column": "{public.bookings: rowguid}"}
    made = parse(both + section("replications", {"a": queued})).replication("a")
    assert made.version_column == {"public.bookings": "rowguid"}
    for changed, message in (
        ({"updates": "both"}, "write updates: queued"),
        ({"version_column": "{public.booking: rowguid}"}, "did you mean 'public.bookings'"),
    ):
        [found] = problems(both + section("replications", {"a": queued | changed}))
        assert (found.key, message in str(found)) == ("replications.a.version_column", True)


def lacked(sites: Replicated) -> list[str]:
    return [line for line in provisioning.check(sites.installations()) if "version column" in line]
