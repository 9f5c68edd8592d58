"""Column lists and mappings between two real sites: every kind both ways, conflicts, refusals (S0-06, S1-34)."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from concord.databases import provisioning
from concord.messages.errors import MappingNotReversible, ProvisioningRefused
from embedded.postgres import Server
from tests.conftest import PROJECT, Database
from tests.given.fixtures import MakeUnlike, site_on
from tests.given.mapped_pair import configured, installations
from tests.given.site import Rows, Site
from tests.given.tombstones import cleaned
from tests.given.two_sites import carried

pytestmark = pytest.mark.spark

DOCUMENT = PROJECT / "docs" / "mapping.md"

ENTRY = """
- table: public.account
  at: {capetown: public.konto}
  columns: [id, iban, first, last, tail_number, status, balance]
  mappings:
    capetown:
      rename: {balance: saldo}
      cast: {tail_number: {canonical: integer, here: text}}
      split: {iban: {into: [bank_code, number], lengths: [4, 6]}}
      combine: {full_name: {columns: [first, last], separator: " "}}
      values: {status: {map: {A: active, I: inactive}, into: state}}
      constant: {region: ZA}
"""
LONDON = """
CREATE TABLE account (id int PRIMARY KEY, iban text, first text, last text, tail_number int, status text,
                      balance numeric(12,2), note text NOT NULL DEFAULT 'london')
"""
CAPETOWN = """
CREATE TYPE state AS ENUM ('active', 'inactive');
CREATE TABLE konto (id int PRIMARY KEY, bank_code varchar(4), number varchar(6), full_name text, tail_number text,
                    state state, saldo numeric(12,2), region text NOT NULL, branch int DEFAULT 7)
"""


def test_every_kind_of_mapping_both_ways(unlike: MakeUnlike) -> None:
    sites = unlike(ENTRY, LONDON, CAPETOWN)
    sites.london.run(
        "INSERT INTO account VALUES (1, 'BANK123456', 'Ada', 'Lovelace', 4711, 'A', 1.50),"
        " (2, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    sites.capetown.run(
        "INSERT INTO konto VALUES (3, 'KONT', '000042', 'Grace Hopper', '-7', 'inactive', 2.00, 'ZA')"
    )
    sites.settle()
    assert sites.capetown.rows("TABLE konto ORDER BY id")[0] == (
        *(1, "BANK", "123456", "Ada Lovelace", "4711", "active"),
        *(sites.london.value("SELECT balance FROM account WHERE id = 1"), "ZA", 7),
    )
    assert sites.london.rows(
        "SELECT iban, first, last, tail_number, status, balance::text, note FROM account WHERE id = 3"
    ) == [("KONT000042", "Grace", "Hopper", -7, "I", "2.00", "london")]
    assert sites.equal
    assert sites.conflicts() == []


def test_edits_at_both_sites_meet_as_conflicts_with_both_rows_whole(unlike: MakeUnlike) -> None:
    sites = unlike(
        ENTRY,
        LONDON
        + "; INSERT INTO account SELECT n, 'BANK00000' || n, 'Ada', 'L' || n, n, 'A', n FROM generate_series(1, 3) n",
        CAPETOWN
        + "; INSERT INTO konto SELECT n, 'BANK', '00000' || n, 'Ada L' || n, n::text, 'active', n, 'ZA'"
        " FROM generate_series(1, 3) n",
    )
    sites.london.run(
        "UPDATE account SET last = 'Byron', note = 'mine' WHERE id = 1", "DELETE FROM account WHERE id = 2"
    )
    sites.capetown.run(
        "UPDATE konto SET state = 'inactive', branch = 8 WHERE id = 1",
        "UPDATE konto SET saldo = 9 WHERE id = 2",
    )
    sites.settle()
    assert sites.equal
    assert [(each["key"], each["type"], each["winner_site"]) for each in sites.conflicts()] == [
        (["1"], "update_update", "capetown"),
        (["2"], "delete_update", "capetown"),
    ]
    first = sites.conflicts()[0]
    assert first["winner_row"] == {
        **{"id": "1", "bank_code": "BANK", "number": "000001", "full_name": "Ada L1", "tail_number": "1"},
        **{"state": "inactive", "saldo": "1.00", "region": "ZA"},
    }
    assert first["loser_row"] == first["winner_row"] | {"full_name": "Ada Byron", "state": "active"}
    assert sites.london.rows("SELECT last, status, note FROM account WHERE id = 1") == [("L1", "I", "mine")]
    assert sites.capetown.rows("SELECT full_name, branch FROM konto WHERE id = 1") == [("Ada L1", 8)]


UNFAITHFUL = [
    # Cape Town's edit, or London's, and what is said of it
    ("capetown", "UPDATE konto SET tail_number = '007'", "cast of tail_number at capetown"),
    ("capetown", "UPDATE konto SET full_name = 'Ada King Lovelace'", "combine of first, last at capetown"),
    ("capetown", "UPDATE konto SET region = 'US'", "constant of region at capetown"),
    ("capetown", "UPDATE konto SET number = NULL", "split of iban at capetown"),
    ("london", "UPDATE account SET iban = 'BANK1234567'", "split of iban at capetown"),
    ("london", "UPDATE account SET first = NULL", "combine of first, last at capetown"),
    ("london", "UPDATE account SET first = 'A da'", "combine of first, last at capetown"),
    ("london", "UPDATE account SET status = 'X'", "values of status at capetown"),
]


def written(site: Site, table: str) -> tuple[Rows, Rows]:
    """The rows of a table and their versions."""
    return site.rows(f"TABLE {table}"), site.rows('TABLE concord."public.account"')


def test_rows_that_would_not_come_back_stop_their_table_and_nothing_else(unlike: MakeUnlike) -> None:
    sites = unlike(
        ENTRY + "- table: public.other",
        LONDON + "; CREATE TABLE other (id int PRIMARY KEY);"
        "INSERT INTO account SELECT n, 'BANK123456', 'Ada', 'Lovelace', 4711, 'A', 1.50 FROM generate_series(1, 5) n",
        CAPETOWN + "; CREATE TABLE other (id int PRIMARY KEY); INSERT INTO konto SELECT n, 'BANK', '123456',"
        " 'Ada Lovelace', '4711', 'active', 1.50, 'ZA' FROM generate_series(1, 5) n",
    )
    tables = {"london": "account", "capetown": "konto"}
    for site in sites.sites:
        site.run(f"CREATE TABLE good AS TABLE {tables[site.name]}")
    for ordinal, (name, edit, what) in enumerate(UNFAITHFUL):
        source, target = sites.sites if name == "london" else sites.sites[::-1]
        table, before = tables[name], written(target, tables[target.name])
        where = " WHERE id < 5" if ordinal else " WHERE id = 3"
        source.run(edit + where, f"INSERT INTO other VALUES ({ordinal})")
        report = sites.run("forward" if name == "london" else "reverse")
        count, keys = ("4 rows", "key 1; {0}, key 2; {0}, key 3") if ordinal else ("1 row", "key 3")
        assert report.stopped == {
            "public.account": f"public.account: {count} of {source.name} would not come back the same from"
            f" {target.name}: {what}, {keys.format(what)}. Mend the rows or the mapping; nothing of the table was"
            " written"
        }
        assert (report.error_code, carried(report, "public.other").applied) == ("tables_stopped", 1)
        assert written(target, tables[target.name]) == before
        source.run(f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM good")
    sites.settle()
    assert sites.equal


def test_a_plan_says_which_rows_would_not_come_back(unlike: MakeUnlike) -> None:
    sites = unlike(ENTRY, LONDON, CAPETOWN)
    sites.capetown.run("INSERT INTO konto VALUES (1, 'BANK', '123456', 'Ada', '7', 'active', 1, 'ZA')")
    with pytest.raises(MappingNotReversible, match="combine of first, last at capetown, key 1"):
        sites.run("reverse", plan_only=True)
    with pytest.raises(MappingNotReversible, match="combine of first, last at capetown, key 1"):
        sites.run("reverse")
    assert sites.london.rows("TABLE account") == []


KEYED = """
- table: public.seat
  key: [flight, row, class]
  mappings:
    capetown:
      split: {flight: {into: [carrier, number], separator: " "}}
      cast: {row: {canonical: smallint, here: text, into: a_row}}
      values: {class: {map: {"1": first, "2": economy}}}
"""


def test_mapped_keys_identify_the_same_rows_at_both_sites(unlike: MakeUnlike) -> None:
    # S0-23: inserts, deletes, conflicts and key changes of a key that is split, cast and mapped by value
    sites = unlike(
        KEYED,
        "CREATE TABLE seat (class int, flight text, row smallint, who text, PRIMARY KEY (flight, row, class));"
        "INSERT INTO seat SELECT 1, 'BA ' || n, n, 'nobody' FROM generate_series(1, 4) n",
        "CREATE TABLE seat (class text, carrier text, number text, a_row text, who text,"
        " PRIMARY KEY (carrier, number, a_row, class));"
        "INSERT INTO seat SELECT 'first', 'BA', n, n, 'nobody' FROM generate_series(1, 4) n",
    )
    sites.london.run(
        "UPDATE seat SET who = 'Ada' WHERE row IN (1, 2)",
        "DELETE FROM seat WHERE row = 3",
        "UPDATE seat SET class = 2 WHERE row = 4",
        "INSERT INTO seat VALUES (1, 'LH 7', 9, 'new')",
    )
    sites.capetown.run(
        "UPDATE seat SET who = 'Grace' WHERE a_row = '2'",
        "INSERT INTO seat VALUES ('economy', 'SA', '1', '1', 'x')",
    )
    sites.settle()
    assert sites.equal
    assert sites.capetown.rows("SELECT carrier, number, a_row, class, who FROM seat ORDER BY 1, 2, 3") == [
        ("BA", "1", "1", "first", "Ada"),
        ("BA", "2", "2", "first", "Grace"),
        ("BA", "4", "4", "economy", "nobody"),
        ("LH", "7", "9", "first", "new"),
        ("SA", "1", "1", "economy", "x"),
    ]
    (conflict,) = sites.conflicts()
    assert conflict["key"] == ["1", "BA 2", "2"]  # canonical, by name: class, flight, row
    assert [report.total("acquired") for report in sites.settle()] == [0, 0, 0, 0]
    # T07: both sites hold the two tombstones, each in its own form of the key, and give them up together
    assert [each.removed for each in cleaned(sites)] == [2, 2]
    sites.capetown.run("UPDATE seat SET a_row = '07' WHERE a_row = '9'")
    with pytest.raises(MappingNotReversible, match="cast of row at capetown, key 07, LH, first, 7"):
        sites.run("reverse")


def test_what_is_not_listed_is_each_sites_own(unlike: MakeUnlike) -> None:
    sites = unlike(
        "- {table: public.flag, columns: [id, code]}",
        "CREATE TABLE flag (id int PRIMARY KEY, code text UNIQUE, colour text, serial int GENERATED ALWAYS AS IDENTITY"
        ");"
        "INSERT INTO flag VALUES (1, 'a', 'red'), (2, 'b', 'blue')",
        "CREATE TABLE flag (id int PRIMARY KEY, code text UNIQUE, pole int DEFAULT 3);"
        "INSERT INTO flag VALUES (1, 'a', 10), (2, 'b', 20)",
    )
    sites.london.run("UPDATE flag SET colour = 'green'")
    assert sites.run().total("acquired") == 0  # an edit of nothing that is replicated is no change
    # F38: unique values that move between rows take no unlisted column with them
    sites.london.run(
        "UPDATE flag SET code = 'x' WHERE id = 1",
        "UPDATE flag SET code = 'a' WHERE id = 2",
        "UPDATE flag SET code = 'b' WHERE id = 1",
    )
    sites.capetown.run("INSERT INTO flag VALUES (3, 'c')")
    sites.settle()
    assert sites.capetown.rows("TABLE flag ORDER BY id") == [(1, "b", 10), (2, "a", 20), (3, "c", 3)]
    sites.capetown.run(
        "UPDATE flag SET code = 'x' WHERE id = 1",
        "UPDATE flag SET code = 'b' WHERE id = 2",
        "UPDATE flag SET code = 'a' WHERE id = 1",
    )
    sites.settle()
    assert sites.london.rows("SELECT id, code, colour, serial FROM flag ORDER BY id") == [
        (1, "a", "green", 1),
        (2, "b", "green", 2),
        (3, "c", None, 3),
    ]
    assert sites.equal


REFUSED = [
    (
        "- {table: public.t, columns: [id, a]}",
        "CREATE TABLE t (id int PRIMARY KEY, a int, b int NOT NULL)",
        "has the column b, which is not replicated but NOT NULL without a default: rows of other sites could not be"
        " inserted; give it a default, or add it to columns",
    ),
    (
        "- {table: public.t, columns: [a]}",
        "CREATE TABLE t (id int PRIMARY KEY, a int)",
        "has the key column id, which the configuration does not list; add it to columns",
    ),
    (
        "- {table: public.t, columns: [id, ab]}",
        "CREATE TABLE t (id int PRIMARY KEY, abc int)",
        "has no column ab, which the configuration lists; did you mean 'abc'?",
    ),
    (
        "- {table: public.t, columns: [id, a]}",
        "CREATE TABLE t (id int PRIMARY KEY, a int GENERATED ALWAYS AS (id) STORED)",
        "has the generated column a, which the configuration lists; leave it out of columns",
    ),
    (
        "- {table: public.t, mappings: {capetown: {rename: {a: salod}}}}",
        "CREATE TABLE t (id int PRIMARY KEY, saldo int)",
        "has no column salod, which the mapping names (rename of a); did you mean 'saldo'?",
    ),
    (
        "- {table: public.t, mappings: {capetown: {rename: {a: b}}}}",
        "CREATE TABLE t (id int PRIMARY KEY, a int, b int)",
        "has a column a besides b, which the mapping makes of it (rename of a); drop one, or list the columns that"
        " are replicated",
    ),
    (
        "- {table: public.t, mappings: {capetown: {cast: {a: {canonical: int, here: text}}}}}",
        "CREATE TABLE t (id int PRIMARY KEY, a varchar(9))",
        "has the column a of type character varying(9), where the mapping says text (cast of a); correct one"
        " of the two",
    ),
    (
        "- {table: public.t, mappings: {capetown: {values: {a: {map: {x: z}}}}}}",
        "CREATE TABLE t (id int PRIMARY KEY, a timestamptz)",
        "has the column a of type timestamp with time zone, whose values cannot be mapped exactly (values of a); such"
        " a column can only be renamed",
    ),
    (
        "- {table: public.t, mappings: {capetown: {cast: {id: {canonical: int, here: numeric}}}}}",
        "CREATE TABLE t (id numeric PRIMARY KEY)",
        "has the column id of type numeric in its key: equal numbers have several texts, so it can only be renamed"
        " (cast of id)",
    ),
]  # fmt: skip


def test_what_only_the_catalogue_shows_is_refused_when_provisioning(
    server_with_logins: Server, database: Callable[[], Database], tmp_path: Path
) -> None:
    site = site_on(server_with_logins, "capetown", database().name)
    for entry, ddl, problem in REFUSED:
        site.run("DROP TABLE IF EXISTS t", ddl)
        with pytest.raises(ProvisioningRefused) as refused:
            provisioning.provision(installations([site], configured(entry, tmp_path)))
        assert refused.value.facts["problems"] == (f"capetown: public.t {problem}",)
    site.connection.close()


def test_sites_that_do_not_fit_together_are_refused_by_canonical_name(
    server_with_logins: Server, database: Callable[[], Database], tmp_path: Path
) -> None:
    both = [site_on(server_with_logins, name, database().name) for name in ("london", "capetown")]
    both[0].run("CREATE TABLE t (id int PRIMARY KEY, a bigint, at timestamptz, b text)")
    both[1].run("CREATE TABLE t (id int PRIMARY KEY, x text, day text, time text)")
    tables = configured(
        """
        - table: public.t
          mappings:
            capetown:
              cast: {a: {canonical: int, here: text, into: x}}
              split: {at: {into: [day, time], separator: " "}}
        """,
        tmp_path,
    )
    with pytest.raises(ProvisioningRefused) as refused:
        provisioning.provision(installations(both, tables))
    assert refused.value.facts["problems"] == (
        "public.t: column b exists at london but not at capetown",
        "public.t: column a is bigint at london and integer at capetown",
        "public.t: column at is timestamp with time zone at london and mapped at capetown",
    )
    for site in both:
        site.connection.close()


def test_the_worked_example_of_the_documentation(unlike: MakeUnlike) -> None:
    blocks = dict(re.findall(r"```(yaml|sql [a-z ]+)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL))
    sites = unlike(blocks["yaml"], blocks["sql london"], blocks["sql capetown"])
    sites.london.run(blocks["sql london edit"])
    sites.capetown.run(blocks["sql capetown edit"])
    sites.settle()
    assert sites.equal
    assert sites.capetown.rows("SELECT state, saldo::text FROM konto WHERE id = 1") == [("inactive", "2.00")]
    assert sites.london.rows("SELECT first, last, iban, note FROM account WHERE id = 2") == [
        ("Grace", "Hopper", "KONT000042", "")
    ]
    assert sites.conflicts() == []
