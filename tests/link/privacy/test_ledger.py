"""A value that the conflict ledger must not show never leaves the transaction of the defeat: it is hashed or
dropped."""

import hashlib
import hmac
import json
from pathlib import Path

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.ledger.waiting_table import drop, others
from concord.jobs.ledger import Entry
from concord.messages.errors import ProvisioningRefused
from concord.versions.conflict import conflict_id
from tests.given.fixtures import MakeUnlike
from tests.given.ledger_entries import entries
from tests.given.mapped_pair import configured, installations
from tests.given.site import APPLIER, READER, Site
from tests.given.two_sites import Pair
from tests.given.version_account import version

pytestmark = pytest.mark.spark

PLAIN = """
- table: public.country
- table: public.person
  columns: [id, passport, remark, city]
  mappings: {capetown: {split: {passport: {into: [country, number], lengths: [2, 6]}}}}
"""
PRIVATE = PLAIN + "  private: {id: hashed, passport: hashed, remark: dropped, city: stored}\n"
SECRETS = ("anna@example.org", "ZA123456", "123456", "GB987654", "owes us money", "moved away")


@pytest.fixture
def sites(unlike: MakeUnlike) -> Pair:
    country = "CREATE TABLE country (id text PRIMARY KEY);"
    return unlike(
        PRIVATE,
        country + "CREATE TABLE person (id text PRIMARY KEY, passport text, remark text, city text)",
        country
        + "CREATE TABLE person (id text PRIMARY KEY, country text, number text, remark text, city text)",
    )


def meet(sites: Pair) -> list[Entry]:
    """One conflict of two inserts at each site; the entries by where they were decided."""
    sites.london.run("INSERT INTO person VALUES ('anna@example.org', 'ZA123456', 'owes us money', 'Durban')")
    sites.capetown.run("INSERT INTO person VALUES ('anna@example.org', 'GB', '987654', 'moved away', NULL)")
    sites.run("forward")
    sites.london.run("INSERT INTO person VALUES ('ben', NULL, NULL, NULL)")
    sites.capetown.run("INSERT INTO person VALUES ('ben', 'GB', '987654', 'moved away', 'Leeds')")
    sites.run("reverse")
    return sorted(entries(sites), key=lambda entry: entry.site)


def hashed(site: Site, *parts: object) -> str:
    """HMAC-SHA-256 by another hand, under the site's secret."""
    ((inner, text),) = site.connection.execute(
        "SELECT inner_pad, jsonb_build_array(VARIADIC %s::text[])::text FROM concord.secret",
        [[str(part) for part in parts]],
    ).fetchall()
    secret = bytes(byte ^ 0x36 for byte in inner).rstrip(b"\0")
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def test_private_values_and_keys_stand_nowhere_in_the_ledger_and_hashes_tell_equal_from_unlike(
    sites: Pair,
) -> None:
    at_capetown, at_london = meet(sites)
    for site in sites.sites:
        stored = str(site.rows("SELECT c::text FROM concord.conflict c"))
        assert [secret for secret in SECRETS if secret in stored] == []

    won, lost = at_capetown.winner_row, at_capetown.loser_row
    assert won is not None
    assert lost is not None
    assert (won["city"], lost["city"]) == (None, "Durban")
    assert set(won) == set(lost) == {"id", "country", "number", "city"}, "what is dropped leaves no name"
    assert won["number"] == hashed(sites.capetown, "public.person", "number", "987654")
    assert lost["number"] == hashed(sites.capetown, "public.person", "number", "123456")
    assert won["id"] == lost["id"], "one key"
    assert at_london.loser_row == {"id": at_london.winner_row["id"], "passport": None, "city": None}  # type: ignore[index]
    assert at_capetown.withheld == {
        "columns": {"id": "hashed", "country": "hashed", "number": "hashed", "remark": "dropped"},
        "key": ["hashed"],
    }
    for entry in (at_capetown, at_london):
        assert "its key is private" in str(entry.refusal), "what is not kept cannot come back"

    # The id is a hash of the key and of what else stands in the entry: it would tell a guess from a wrong one.
    sides = (version(dict(at_capetown.winner_version)), version(dict(at_capetown.loser_version)))
    assert at_capetown.id != conflict_id("public.person", ["anna@example.org"], *sides)
    assert at_capetown.key != ["anna@example.org"]
    secrets = [site.rows("SELECT inner_pad, outer_pad FROM concord.secret") for site in sites.sites]
    assert secrets[0] != secrets[1], "each site its own"
    for login in (READER, APPLIER):
        with sites.london.log_in(login) as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SELECT count(*) FROM concord.secret")
            sites.london.run(f"GRANT SELECT ON concord.secret TO {login}")
            assert connection.execute("SELECT count(*) FROM concord.secret").fetchone() == (0,)


def test_the_applier_who_guesses_a_value_sees_whether_it_is_right_and_leaves_no_trace(sites: Pair) -> None:
    """docs/ledger.md says so. The reader, who may not write, cannot guess."""
    meet(sites)
    guess = (
        "INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver,"
        " reason, winner_site, loser_site, winner_version, loser_version, loser_row) VALUES ('guess', '', '', '',"
        """ 'public.person', '["x"]', '', '', '', '', '', '{}', '{}', jsonb_build_object('number', %s::text))"""
        " RETURNING loser_row"
    )
    known = "SELECT count(*) FROM concord.conflict WHERE winner_row -> 'number' = %s::jsonb -> 'number'"
    before = sites.capetown.rows("TABLE concord.conflict")
    right = {}
    for number in ("987654", "987655"):
        with sites.capetown.log_in(APPLIER, autocommit=False) as connection:
            ((made,),) = connection.execute(guess, [number]).fetchall()
            connection.rollback()
            ((count,),) = connection.execute(known, [json.dumps(made)]).fetchall()
            right[number] = count == 1
    assert right == {"987654": True, "987655": False}
    assert sites.capetown.rows("TABLE concord.conflict") == before
    with sites.capetown.log_in(READER) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(guess, ["987654"])


def test_provisioning_again_keeps_the_secret_and_a_link_stops_until_it_has_run_for_a_new_setting(
    sites: Pair, tmp_path: Path
) -> None:
    secrets = [site.rows("TABLE concord.secret") for site in sites.sites]
    sites.tables = configured(PLAIN + "  private: {remark: dropped}\n", tmp_path)
    sites.london.run("INSERT INTO person VALUES ('carl', NULL, 'owes us money', NULL)")
    assert "other columns are private than when" in sites.run("forward").stopped["public.person"]
    provisioning.provision(installations(sites.sites, sites.tables))
    assert [site.rows("TABLE concord.secret") for site in sites.sites] == secrets
    sites.settle()
    assert sites.equal

    sites.capetown.run("ALTER TABLE concord.conflict DISABLE TRIGGER zz_concord_withhold")
    assert "other columns are private" in sites.run("forward").stopped["public.person"]
    sites.tables = configured(PLAIN, tmp_path)
    provisioning.provision(installations(sites.sites, sites.tables))
    sites.capetown.run("UPDATE person SET remark = 'moved away' WHERE id = 'carl'")
    sites.london.run("UPDATE person SET remark = 'owes us more money' WHERE id = 'carl'")
    sites.settle()
    (entry,) = entries(sites)
    assert entry.withheld == {}
    assert entry.refusal is None


def test_a_parent_that_lost_to_a_child_shows_nothing_private_of_the_child(sites: Pair) -> None:
    """Its entry has two tables' rows in it, and names one."""
    child = json.dumps({"id": "anna@example.org", "number": "987654", "remark": "moved away", "city": None})
    sites.capetown.as_applier(
        "SET session_replication_role = replica",
        f"""INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver,
                   reason, winner_site, loser_site, winner_version, loser_version, winner_row, loser_row)
            VALUES ('a', 's', 's/forward', 't', 'public.country', '["GB"]', 'foreign_key', 'foreign_key', 'r', 'london',
                    'capetown', '{{}}', '{{}}', '{child}', '{{"id": "GB"}}')""",
    )
    (entry,) = sites.capetown.conflicts()
    assert entry["winner_row"].keys() == {"id", "number", "city"}
    assert [secret for secret in SECRETS if secret in str(entry)] == []
    assert (entry["loser_row"], entry["key"], entry["id"]) == ({"id": "GB"}, ["GB"], "a")


def test_a_row_that_would_not_come_back_the_same_is_not_named_by_its_private_key(sites: Pair) -> None:
    sites.london.run("INSERT INTO person VALUES ('anna@example.org', 'ZA12345678', NULL, NULL)")
    why = sites.run("forward").stopped["public.person"]
    assert (
        "1 row of london would not come back the same from capetown: split of passport at capetown. Mend"
        in why
    )


def test_a_private_column_that_does_not_exist_is_refused(sites: Pair, tmp_path: Path) -> None:
    tables = configured("- {table: public.person, private: {pasport: hashed}}", tmp_path)
    with pytest.raises(
        ProvisioningRefused, match="has no column pasport, which is to be private; did you mean"
    ):
        provisioning.provision(installations([sites.london], tables))


def test_a_row_that_waited_and_is_let_go_shows_nothing_private_although_its_table_has_left(
    sites: Pair, tmp_path: Path
) -> None:
    """Provisioning without the table forgets neither what is private of it nor who takes it out."""
    sites.capetown.run("ALTER TABLE person ADD CHECK (city <> 'Durban')")
    sites.london.run("INSERT INTO person VALUES ('anna@example.org', 'ZA123456', 'owes us money', 'Durban')")
    sites.run("forward")
    provisioning.provision(installations(sites.sites, configured("- table: public.country\n", tmp_path)))
    (row,) = others(sites.capetown.access, [])
    drop(sites.capetown.access, row, "Ada")
    (entry,) = sites.capetown.conflicts()
    assert entry["loser_row"].keys() == {"id", "country", "number", "city"}
    assert (entry["type"], entry["loser_row"]["city"], len(entry["key"][0])) == ("dropped", "Durban", 64)
    assert [secret for secret in SECRETS if secret in str(entry)] == []
    assert sites.capetown.value("SELECT count(*) FROM concord.waiting") == 0
