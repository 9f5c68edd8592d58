"""Publications with several subscribers: levels, purges, transactions that are in many of them or in none."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise

import pytest

from concord.databases import provisioning
from concord.databases.postgresql.entries import from_log
from concord.databases.postgresql.replication import standing
from concord.databases.registry import dialect
from concord.messages.errors import ConcordError, ProvisioningRefused
from concord.tables.manipulation import Combine, Cut, Manipulation
from concord.tables.replication_set import ReplicatedTable
from concord.transactional.upkeep import keep_up
from concord.values.identifier import parse_table_name
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.bare_sites import installation
from tests.given.fixtures import site_on
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import LOG_READER, READER, Site

ITEMS = (
    "CREATE TABLE item (id int PRIMARY KEY, n int, note text)",
    "CREATE TABLE other (id int PRIMARY KEY)",
)
#: A thousand transactions within a moment. No socket holds all of the later ones, which are long.
THOUSAND = """DO $$BEGIN FOR n IN 1..1000 LOOP
  INSERT INTO item VALUES (n, 0, CASE WHEN n > 400 THEN repeat('x', 30000) END); COMMIT;
END LOOP; END$$"""
#: Takes down with which level each row arrives, although other triggers stay silent.
SEEN = (
    "CREATE TABLE seen (level bigint, id int, place bigint GENERATED ALWAYS AS IDENTITY)",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN INSERT INTO public.seen"
    " (level, id) SELECT level, NEW.id FROM concord.replay; RETURN NULL; END$$",
    "CREATE TRIGGER note AFTER INSERT ON item FOR EACH ROW EXECUTE FUNCTION note()",
    "ALTER TABLE item ENABLE ALWAYS TRIGGER note",
)
#: As a publisher does that sends no longer (S4-121).
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    f" AND usename IN ('{READER}', '{LOG_READER}')"
)


@pytest.fixture
def oslo(server_with_logins: Server, database: Callable[[], Database]) -> Iterator[Site]:
    with ExitStack() as opened:
        made = site_on(server_with_logins, "oslo", database().name)
        opened.callback(made.connection.close)
        opened.callback(made.drop_slots)
        made.run(*ITEMS)
        yield made


def provision(*replications: Replicated) -> None:
    """Each site knows all of its replications."""
    sites = {site.name: site for each in replications for site in each.sites}
    all_of_them = tuple(each.definition for each in replications)
    provisioning.provision(
        [
            installation(
                site,
                (),
                log_reader=LOG_READER,
                replications=tuple(each for each in all_of_them if name in (each.publisher, each.subscriber)),
            )
            for name, site in sites.items()
        ]
    )


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_each_subscriber_has_its_own_level_and_a_purge_keeps_what_the_slower_one_needs(
    replicated: Make, oslo: Site, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-30, S4-114, S4-121, S4-123: Oslo is cut off at 400 of a thousand, and goes on from there."""
    monkeypatch.setattr(from_log, "OPERATIONS", 100)
    fast = replicated(ITEMS, "public.item", capture=capture)
    slow = replace(fast, capetown=oslo, name=f"{fast.name}b")
    provision(fast, slow)
    for each in (fast, slow):
        each.initialize()
    take_down_levels(fast.capetown)
    fast.london.run(THOUSAND)

    def cut_at_400() -> bool:
        if oslo.value("SELECT count(*) FROM item") >= 400:
            fast.london.run(CUT)
        return False

    with pytest.raises(ConcordError) as cut:
        slow.run(asked_to_end=cut_at_400)
    assert cut.value.transient
    assert fast.run().entries == 1000
    assert each_has_a_number_of_its_own(fast.capetown)
    assert keep_up(fast.job(), dialect) is True
    first, second = (standing.level(each.job()) for each in (fast, slow))
    assert first
    assert second
    assert (first.entries, 400 <= second.entries < 1000, first.number > second.number) == (1000, True, True)
    kept = standing.kept_log(slow.job(), second.number)
    assert kept
    assert kept.waits
    resumed = slow.run()
    assert (resumed.level_from, resumed.entries) == (second.number, 1000 - second.entries)
    assert fast.are_equal()
    assert slow.are_equal()


def take_down_levels(site: Site) -> None:
    site.run(*SEEN)


def each_has_a_number_of_its_own(site: Site) -> bool:
    """S0-14, S0-20, S4-112, S4-113: in the order of commits. No clock says so: a coarse one does no harm."""
    seen = site.rows("SELECT level, id FROM seen ORDER BY place")
    in_order = [row for _, row in seen] == list(range(1, 1001))
    return in_order and all(one < other for (one, _), (other, _) in pairwise(seen))


def test_a_transaction_is_an_entry_of_each_publication_whose_tables_it_writes(replicated: Make) -> None:
    """S4-111: of both, of one, of none; S4-118: two publications of one server are two."""
    one = replicated(ITEMS, "public.item")
    other = ReplicatedTable(table=parse_table_name("public.other"))
    two = replace(one, tables=(other,), name=f"{one.name}b", replication_set="others")
    provision(one, two)
    for each in (one, two):
        each.initialize()
    one.london.run(
        "BEGIN; INSERT INTO item VALUES (1, 0); INSERT INTO other VALUES (1), (2); COMMIT",
        "INSERT INTO item VALUES (2, 0)",
        "CREATE TABLE unpublished AS SELECT 1 AS id",
    )
    counts = [(report.entries, report.operations) for report in (one.run(), two.run())]
    assert counts == [(2, 2), (1, 2)]
    assert one.are_equal()
    assert two.are_equal()


def test_publications_of_one_name_at_two_servers_are_two(replicated: Make, oslo: Site) -> None:
    """S4-118: Cape Town subscribes to London's and to Oslo's `operations`, each with a level of its own."""
    of_london = replicated(ITEMS, "public.item")
    of_london.capetown.run("CREATE SCHEMA oslo", "CREATE TABLE oslo.item (LIKE item INCLUDING ALL)")
    there = {"capetown": parse_table_name("oslo.item")}
    item = ReplicatedTable(table=parse_table_name("public.item"), at=there)
    of_oslo = replace(of_london, london=oslo, tables=(item,), name=f"{of_london.name}b")
    provision(of_london, of_oslo)
    for each in (of_london, of_oslo):
        each.initialize()
    of_london.london.run("INSERT INTO item VALUES (1, 1)")
    oslo.run("INSERT INTO item VALUES (1, 2)", "UPDATE item SET n = 3")
    assert [each.run().entries for each in (of_london, of_oslo)] == [1, 2]
    assert of_london.capetown.rows("SELECT a.n, b.n FROM item a, oslo.item b") == [(1, 3)]
    levels = of_london.capetown.rows("SELECT publisher, entries FROM concord.replay ORDER BY 1")
    assert levels == [("london", 1), ("oslo", 2)]


def test_levels_go_on_beyond_the_numbers_at_which_32_bits_would_begin_again(replicated: Make) -> None:
    """S4-155: numbers have 64 bits, and nothing is purged to let them wrap around."""
    sites = replicated(ITEMS, "public.item", capture="triggers")
    before = 2**31 - 2
    sites.london.run(
        f"UPDATE concord.last_entry SET number = {before}",
        f"SELECT setval(pg_get_serial_sequence('concord.operation', 'place'), {before})",
    )
    sites.initialize()
    sites.london.run(*(f"INSERT INTO item VALUES ({n}, 0)" for n in range(5)))
    report = sites.run()
    assert (report.entries, report.level_from, report.level_to > 2**31) == (5, before, True)
    assert sites.are_equal()


#: One replication of the table needs rows as they were, each for a reason of its own.
WHOLE: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "a filter": ({"where": "n < 100"}, {}),
    "a mapping of several columns": (
        {
            "manipulations": {
                "capetown": Manipulation(
                    operations=(
                        Combine(canonical=("n", "note"), own=("note",), cut=Cut(parts=2, separator="|")),
                    )
                )
            }
        },
        {},
    ),
    "users who write at both sites": ({}, {"updates": "both"}),
}


@pytest.mark.parametrize("why", WHOLE)
def test_another_replication_of_the_same_table_carries_some_columns_beside_one_that_needs_whole_rows(
    replicated: Make, oslo: Site, why: str
) -> None:
    """PostgreSQL takes no list of columns where a table's log brings rows as they were."""
    table, settings = WHOLE[why]
    name = parse_table_name("public.item")
    one = replicated(ITEMS, ReplicatedTable(table=name, **table), **settings)
    if "manipulations" in table:
        one.capetown.run("ALTER TABLE item DROP n")
    chosen = ReplicatedTable(table=name, columns=("id", "note"))
    some = replace(
        one, capetown=oslo, name=f"{one.name}b", replication_set="some", tables=(chosen,), settings={}
    )
    provision(one, some)
    one.london.run("ALTER TABLE item ALTER note SET STORAGE EXTERNAL")
    some.initialize()
    one.london.run(
        "INSERT INTO item VALUES (1, 1, repeat('x', 9000)), (2, 2, 'short')",
        "UPDATE item SET n = 200 WHERE id = 1",
        "UPDATE item SET id = 3 WHERE id = 1",
        "UPDATE item SET note = 'other', n = 5 WHERE id = 2",
    )
    report = some.run()
    assert (report.entries, report.conversions) == (4, 0)
    sent = "SELECT id, note FROM item ORDER BY id"
    assert oslo.rows(sent) == one.london.rows(sent)
    assert oslo.value("SELECT count(n) FROM item") == 0


def test_a_filter_that_no_replication_has_any_more_is_named_before_users_deletes_are_refused(
    replicated: Make, oslo: Site
) -> None:
    """Its publication stays, and PostgreSQL would refuse every statement on rows that are no longer sent whole."""
    name = parse_table_name("public.item")
    filtered = replicated(ITEMS, ReplicatedTable(table=name, where="n < 100"))  # type: ignore[arg-type]
    plain = replace(
        filtered,
        capetown=oslo,
        name=f"{filtered.name}b",
        replication_set="plain",
        tables=(ReplicatedTable(table=name),),
    )
    provision(filtered, plain)
    plain.initialize()
    filtered.london.run("INSERT INTO item VALUES (1, 1), (2, 2)")
    with pytest.raises(ProvisioningRefused, match="DROP PUBLICATION concord_operations, or keep the repl"):
        provision(plain)
    filtered.london.run("UPDATE item SET n = 3 WHERE id = 1", "DROP PUBLICATION concord_operations")
    provision(plain)
    filtered.london.run("DELETE FROM item WHERE id = 2", "UPDATE item SET note = 'alone'")
    assert plain.run().conversions == 0
    assert oslo.rows("TABLE item") == [(1, 3, "alone")]


def test_sets_whose_long_names_begin_alike_are_two_publications(replicated: Make) -> None:
    """PostgreSQL cuts a name after 63 bytes without a word (F89)."""
    one = replicated(ITEMS, "public.item")
    one.replication_set = f"{'s' * 60}one"
    other = ReplicatedTable(table=parse_table_name("public.other"))
    two = replace(one, tables=(other,), name=f"{one.name}b", replication_set=f"{'s' * 60}two")
    for _ in range(2):
        provision(one, two)
    for each in (one, two):
        each.initialize()
    one.london.run("INSERT INTO item VALUES (1, 0)", "INSERT INTO other VALUES (1)")
    assert [each.run().entries for each in (one, two)] == [1, 1]
    assert one.are_equal()
    assert two.are_equal()
