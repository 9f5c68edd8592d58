"""A site's words about a row that it refuses go to logs and to people: they tell no private value
(docs/ledger.md)."""

from contextlib import closing
from dataclasses import replace

import pytest

from concord.databases.postgresql.upkeep.decide import Desk
from concord.messages.errors import ConcordError, ConstraintViolated
from concord.rules.policy import Policy
from concord.tables.privacy import PRIVATE, Treatment
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import carry
from tests.given.site import provision_site
from tests.given.strangers import forget, initialized, unstamped
from tests.given.two_sites import Pair

SECRET = "GB-987654"
PERSON = "CREATE TABLE person (id text PRIMARY KEY, passport text NOT NULL)"
BOTH = f"INSERT INTO person VALUES ('anna', '{SECRET}'), ('ben', '{SECRET}')"

#: The object that Cape Town alone has, and the words about a row that it refuses for that.
REFUSALS = {
    "unique": (
        ("CREATE UNIQUE INDEX one ON person (passport)",),
        "UniqueViolation, table person, constraint one (SQLSTATE 23505; more is private)",
    ),
    "raised": (
        (
            "CREATE FUNCTION valid(text) RETURNS boolean LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'passport % is invalid', $1; END $$",
            "ALTER TABLE person ADD CHECK (valid(passport)) NOT VALID",
        ),
        "RaiseException (SQLSTATE P0001; more is private)",
    ),
    "no number": (
        ("ALTER TABLE person ADD CHECK (passport::int > 0) NOT VALID",),
        "InvalidTextRepresentation (SQLSTATE 22P02; more is private)",
    ),
    "deferrable": (
        ("ALTER TABLE person ADD CONSTRAINT one UNIQUE (passport) DEFERRABLE",),
        "two rows of public.person, one of them anna, would have the same unique (passport)",
    ),
    "no parent": (
        (
            "CREATE TABLE passport (id text PRIMARY KEY)",
            "GRANT ALL ON passport TO PUBLIC",
            "ALTER TABLE person ADD FOREIGN KEY (passport) REFERENCES passport",
        ),
        "rows of public.passport that are not there after this link: one site deleted",
    ),
}


def private(sites: Pair, *columns: str, policy: Policy | None = None) -> Pair:
    """The pair with these columns private; both sites heed them."""
    changed = {"private": dict.fromkeys(columns, Treatment.HASHED), "policy": policy or Policy()}
    tables = tuple(each.model_copy(update=changed) for each in sites.tables)
    for site in sites.sites:
        provision_site(site, tables)
    return replace(sites, tables=tables)


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refused_row_is_told_without_its_private_values(pair: MakePair, why: str) -> None:
    sites = private(pair(PERSON), "passport")
    ddl, told = REFUSALS[why]
    sites.capetown.run(*ddl)
    sites.london.run(BOTH)
    with pytest.raises(ConcordError) as stopped:
        carry(sites.job(max_quarantined=0))
    assert told in stopped.value.message
    assert SECRET not in stopped.value.message

    carry(sites.job())
    waiting = sites.capetown.rows("SELECT kind, reason FROM concord.waiting")
    assert {kind for kind, _ in waiting} == {"quarantined"}
    assert SECRET not in str(waiting)


def test_where_the_key_is_private_no_row_is_named(pair: MakePair) -> None:
    sites = private(pair(PERSON), "id")
    ddl, _ = REFUSALS["deferrable"]
    sites.capetown.run(*ddl)
    sites.london.run(BOTH)
    with pytest.raises(ConstraintViolated, match=r"two rows of public.person would have") as stopped:
        carry(sites.job(max_quarantined=0))
    assert "anna" not in stopped.value.message


def test_a_table_without_private_columns_tells_what_the_site_said(pair: MakePair) -> None:
    sites = pair(PERSON)
    ddl, _ = REFUSALS["raised"]
    sites.capetown.run(*ddl)
    sites.london.run(BOTH)
    with pytest.raises(ConcordError, match=f"passport {SECRET} is invalid"):
        carry(sites.job(max_quarantined=0))


def test_a_held_row_says_which_of_its_columns_are_private(pair: MakePair) -> None:
    sites = private(pair(PERSON), "id", "passport", policy=Policy(resolvers=("hold",)))
    for site in sites.sites:
        site.run(f"INSERT INTO person VALUES ('anna', '{SECRET} {site.name}')")
    carry(sites.job())
    with closing(Desk(sites.job())) as desk:
        (entry,) = desk.entries(10)
    assert (set(entry.private), entry.name) == ({"id", "passport"}, PRIVATE)
    assert (entry.held, entry.key) == (True, ["anna"])


@pytest.mark.spark
def test_an_initialization_names_refused_rows_without_private_keys_and_values(pair: MakePair) -> None:
    sites = private(pair(PERSON), "id", "passport")
    forget(sites)
    unstamped(sites.london, BOTH)
    ddl, told = REFUSALS["no number"]
    sites.capetown.run(*ddl)
    with pytest.raises(ConstraintViolated, match="2 rows were refused") as refused:
        initialized(sites)
    assert f"capetown: public.person {PRIVATE}: {told}" in refused.value.message
    assert [each for each in ("anna", "ben", SECRET) if each in refused.value.message] == []
