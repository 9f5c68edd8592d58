"""One loss that two sites find is one entry of the ledger: its id names the rule as every site knows it (F26)."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pyspark.sql import SparkSession

from concord.databases.postgresql.constraints import rule_identity, unique_rules
from concord.databases.postgresql.sites.ends import Target
from tests.given.bare_sites import Bare
from tests.given.fixtures import MakeNetwork
from tests.given.link_without_spark import carry
from tests.given.many_sites import Network, mesh
from tests.given.mapped_pair import begin_mapped, configured
from tests.given.two_sites import Pair

TABLES = (
    "CREATE TABLE person (id int PRIMARY KEY, email text, phone text)",
    "CREATE UNIQUE INDEX person_email ON person (email)",
    "CREATE UNIQUE INDEX person_phone ON person (lower(phone)) WHERE phone <> ''",
    "CREATE TABLE letter (id int PRIMARY KEY, person int REFERENCES person)",
    "CREATE TABLE parcel (id int PRIMARY KEY, person int REFERENCES person ON DELETE CASCADE)",
    "INSERT INTO person VALUES (1, 'one', NULL), (2, 'two', NULL)",
)
OTHER_NAMES = (
    "ALTER INDEX person_email RENAME TO a_second_name",
    "ALTER INDEX person_phone RENAME TO another_name",
    "ALTER TABLE letter RENAME CONSTRAINT letter_person_fkey TO whose",
    "ALTER TABLE parcel RENAME CONSTRAINT parcel_person_fkey TO of_whom",
)


def renamed(network: MakeNetwork) -> Network:
    """Three sites; the indexes and foreign keys of Quito have names of their own."""
    sites = network(mesh("oslo", "paris", "quito"), *TABLES)
    sites["quito"].run(*OTHER_NAMES)
    return sites


def found_twice(sites: Network) -> list[str]:
    """Paris hears of Quito's change, and then both of Oslo's: the ids that they log."""
    for link in (("quito", "paris"), ("oslo", "paris"), ("oslo", "quito")):
        carry(sites.job(*link))
    paris, quito = (sorted(entry["id"] for entry in sites[name].conflicts()) for name in ("paris", "quito"))
    assert paris == quito
    return paris


def test_a_unique_value_lost_at_two_sites_is_one_loss_whatever_they_call_the_index(
    network: MakeNetwork,
) -> None:
    sites = renamed(network)
    sites["oslo"].run("INSERT INTO person VALUES (10, 'taken', NULL)")
    sites["quito"].run("INSERT INTO person VALUES (11, 'taken', NULL)")
    assert len(found_twice(sites)) == 1


def test_a_value_of_an_expression_lost_at_two_sites_is_one_loss(network: MakeNetwork) -> None:
    sites = renamed(network)
    sites["oslo"].run("INSERT INTO person VALUES (10, 'ten', 'A')")
    sites["quito"].run("INSERT INTO person VALUES (11, 'eleven', 'a')")
    assert len(found_twice(sites)) == 1


def test_a_parent_brought_back_at_two_sites_is_one_loss_whatever_they_call_the_foreign_key(
    network: MakeNetwork,
) -> None:
    sites = renamed(network)
    sites["oslo"].run("INSERT INTO letter VALUES (10, 1)")
    sites["quito"].run("DELETE FROM person WHERE id = 1")
    assert len(found_twice(sites)) == 1


def test_a_child_that_gives_way_at_two_sites_is_one_loss_whatever_they_call_the_foreign_key(
    network: MakeNetwork,
) -> None:
    sites = renamed(network)
    sites["oslo"].run("INSERT INTO parcel VALUES (10, 2)")
    sites["quito"].run("DELETE FROM person WHERE id = 2")
    assert len(found_twice(sites)) == 1


def test_a_loss_that_was_logged_under_another_id_is_not_logged_again_by_a_link_that_repeats_it(
    network: MakeNetwork,
) -> None:
    """Ids from before this rule stay: whoever lost has seen what it lost to, and does not lose to it again."""
    sites, lost = renamed(network), (("quito", "paris"), ("oslo", "paris"))
    for link in sites.topology.links * 2:
        carry(sites.job(*link))
    sites["oslo"].run("INSERT INTO person VALUES (10, 'taken', NULL)", "INSERT INTO letter VALUES (10, 1)")
    sites["quito"].run("INSERT INTO person VALUES (11, 'taken', NULL)", "DELETE FROM person WHERE id = 1")
    for link in lost:
        carry(sites.job(*link))
    sites["paris"].run("UPDATE concord.conflict SET id = 'before ' || id")
    for link, name in ((sites.link(*ends), name) for ends in lost for name in ends):
        sites[name].run(f"UPDATE concord.link_state SET history = history - 0 WHERE link = '{link}'")
    assert [sum(report.acquired for report in carry(sites.job(*link)).values()) for link in lost] == [2, 2]
    for link in sites.topology.links * 2:
        carry(sites.job(*link))
    assert [entry["id"][:7] for entry in sites["paris"].conflicts()] == ["before "] * 2
    assert sites.equal


RULES = (
    "CREATE UNIQUE INDEX a ON person (email, phone)",
    "CREATE UNIQUE INDEX b ON person (phone, email) NULLS NOT DISTINCT",
    "CREATE UNIQUE INDEX c ON person (email, phone) WHERE id > 5",
    "CREATE UNIQUE INDEX d ON person (email, lower(phone))",
    "ALTER TABLE person ADD CONSTRAINT e EXCLUDE (email WITH =, phone WITH =)",
)


def identities(pair: Pair, table: str = "public.person") -> list[set[str]]:
    """Of the unique rules of a table, at either site."""
    found = []
    for direction in ("reverse", "forward"):
        with closing(Target(pair.job(direction))) as target:
            shapes, _ = target.inspect(pair.tables)
            (shape,) = (each for each in shapes if each.name == table)
            rules = unique_rules.read(target.connection, shape)
            found.append({rule_identity.of_unique(rule, shape) for rule in rules})
            assert len(found[-1]) == len(rules)
    return found


MAPPED = """
- table: public.person
  mappings:
    capetown:
      rename: {email: mail}
      split: {passport: {into: [country, number], lengths: [2, 6]}}
      combine: {whole: {columns: [first, last], separator: " "}}
      constant: {region: ZA}
- table: public.letter
  at: {capetown: public.brief}
  mappings: {capetown: {rename: {person: von}}}
"""
COLUMNS = "email text, passport text, first text, last text"


def mapped(sites: Bare, tmp_path: Path, london_rules: Sequence[str], capetown_rules: Sequence[str]) -> Pair:
    london, capetown = sites.sites
    london.run(
        f"CREATE TABLE person (id int PRIMARY KEY, {COLUMNS})",
        "CREATE TABLE letter (id int PRIMARY KEY, person int CONSTRAINT letter_person REFERENCES person)",
        *london_rules,
    )
    capetown.run(
        "CREATE TABLE person (id int PRIMARY KEY, mail text, country text, number text, whole text, region text)",
        "CREATE TABLE brief (id int PRIMARY KEY, von int CONSTRAINT brief_von REFERENCES person)",
        *capetown_rules,
    )
    return begin_mapped(london, capetown, configured(MAPPED, tmp_path), _nobody)


def _nobody() -> SparkSession:
    raise AssertionError("these links run without Spark")


def test_rules_on_the_same_columns_stay_apart(network: MakeNetwork) -> None:
    sites = network(mesh("oslo", "paris"), TABLES[0], *RULES)
    pair = Pair(sites["oslo"], sites["paris"], sites.tables, sites.spark)
    ours, theirs = identities(pair)
    assert ours == theirs
    assert len(ours) == len(RULES)


def test_sites_that_keep_a_column_differently_name_its_rules_alike(sites: Bare, tmp_path: Path) -> None:
    pair = mapped(
        sites,
        tmp_path,
        (
            "CREATE UNIQUE INDEX a ON person (email)",
            "CREATE UNIQUE INDEX b ON person (passport)",
            "CREATE UNIQUE INDEX c ON person (last, first, email)",
            "CREATE UNIQUE INDEX d ON person (lower(email)) WHERE email <> 'mail'",
        ),
        (
            "CREATE UNIQUE INDEX d ON person (mail, region)",
            "CREATE UNIQUE INDEX c ON person (number, country)",
            "CREATE UNIQUE INDEX b ON person (mail, whole)",
            "CREATE UNIQUE INDEX a ON person (lower(mail)) WHERE mail <> 'mail'",
        ),
    )
    ours, theirs = identities(pair)
    assert ours == theirs


def test_sites_that_call_a_column_otherwise_name_its_foreign_key_alike(sites: Bare, tmp_path: Path) -> None:
    pair = mapped(sites, tmp_path, (), ())
    found = set()
    for direction in ("reverse", "forward"):
        with closing(Target(pair.job(direction))) as target:
            shapes = {shape.table.name: shape for shape in target.inspect(pair.tables)[0]}
            (key,) = (key for shape in shapes.values() for key in shape.table.foreign_keys)
            found.add(rule_identity.of_foreign_key(key, shapes))
    assert found == {'public.letter REFERENCES public.person: "person" TO "id"'}
