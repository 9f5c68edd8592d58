"""Publisher rules at a publisher and two subscribers: what every site gets undecided, and by the source's samples."""

from dataclasses import dataclass, replace

import pytest

from concord.rules.policy import Policy
from tests.given.fixtures import MakeNetwork
from tests.given.many_sites import Link, Network, hub
from tests.given.site import provision_site

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("judged")]

SITES = ("oslo", "paris", "quito")
PLACES = {"oslo": 0, "paris": -1, "quito": -1}
CUSTOM = "custom(tests.given.custom_functions:{})"
TABLES = {
    "plain": ("publisher_rules",),
    "first": (CUSTOM.format("publishers_row"), "publisher_rules"),
    "minimal": (CUSTOM.format("minimal_price"), "publisher_rules"),
    "changed": (CUSTOM.format("change_to_minimum"), "publisher_rules"),
    "merged": ("merge_columns", "publisher_rules"),
}
#: Oslo takes what Paris did before it meets Quito, at Oslo or at Quito.
ORDERS: tuple[tuple[Link, ...], ...] = (
    (("paris", "oslo"), ("quito", "oslo"), ("oslo", "paris"), ("oslo", "quito")),
    (("paris", "oslo"), ("oslo", "quito"), ("quito", "oslo"), ("oslo", "paris")),
)
WINS, IGNORED = "the publisher's row", "the subscriber's change is ignored"

Row = tuple[str, str]  #: name, price


@dataclass
class Published:
    """Oslo publishes each table; Paris and Quito subscribe. Every table has the rows 1 to 99 of `both`."""

    network: Network

    def edit(self, site: str, table: str, key: int, verb: str, price: int = 1) -> None:
        self.network[site].run(
            {
                "insert": f"INSERT INTO {table} VALUES ({key}, '{site}', {price})",
                "update": f"UPDATE {table} SET name = '{site}', price = {price} WHERE item_id = {key}",
                "delete": f"DELETE FROM {table} WHERE item_id = {key}",
            }[verb]
        )

    def synchronize(self, order: tuple[Link, ...] = ORDERS[0]) -> None:
        """Until nothing is left to tell."""
        self.network.round(order)
        self.network.round(order)
        assert not any(report.total("acquired") for report in self.network.round(order))

    def row(self, table: str, key: int) -> Row | None:
        """The one row, the same at all three sites."""
        query = f"SELECT name, price::text FROM {table} WHERE item_id = {key}"
        found = {site: next(iter(self.network[site].rows(query)), None) for site in SITES}
        assert len({*found.values()}) == 1, (table, key, found)
        return found["oslo"]

    def decided(self, table: str, key: int) -> set[tuple[str, str, str]]:
        """The loser, the resolver and its reason."""
        return {
            (each["loser_site"], each["resolver"], each["reason"])
            for each in self.network.conflicts()
            if (each["table_name"], each["key"]) == (f"public.{table}", [str(key)])
        }


@pytest.fixture
def items(network: MakeNetwork) -> Published:
    ddl = [
        line
        for table in TABLES
        for line in (
            f"CREATE TABLE {table} (item_id int PRIMARY KEY, name text, price numeric(8,2))",
            f"INSERT INTO {table} SELECT n, 'both', 1 FROM generate_series(1, 99) n",
        )
    ]
    made = network(hub(*SITES), *ddl)
    tables = tuple(
        table.model_copy(update={"policy": Policy(resolvers=TABLES[table.table.name], places=PLACES)})
        for table in made.tables
    )
    for site in made.sites:
        provision_site(site, tables)  # of one table a site keeps what its rows were
    return Published(replace(made, tables=tables))


#: Key of the first order: what the publisher or Paris did, what Quito did, the row that all hold, why, who lost.
#: Quito edits first where its key is odd: no stamp decides.
UNDECIDED = {
    101: (("oslo", "insert"), "insert", "oslo", WINS),
    102: (("paris", "insert"), "insert", "paris", WINS),
    11: (("oslo", "update"), "update", "oslo", WINS),
    12: (("paris", "update"), "update", "paris", WINS),
    13: (("paris", "update"), "update", "paris", WINS),
    21: (("oslo", "delete"), "update", None, IGNORED),
    22: (("paris", "delete"), "update", None, IGNORED),
    23: (("oslo", "delete"), "delete", None, None),
    31: (("oslo", "update"), "delete", "oslo", IGNORED),
    32: (("paris", "update"), "delete", "paris", IGNORED),
}


@pytest.mark.parametrize("order", ORDERS, ids=["to the publisher first", "from the publisher first"])
def test_a_conflict_that_no_resolver_decides_leaves_the_publishers_row_at_every_site(
    items: Published, order: tuple[Link, ...]
) -> None:
    """S4-027, S4-043 to S4-046, S4-060 to S4-063, T15 (a). The originator is among the sites."""
    for key, ((site, verb), theirs, _, _) in UNDECIDED.items():
        edits = [(site, verb), ("quito", theirs)]
        for where, what in reversed(edits) if key % 2 else edits:
            items.edit(where, "plain", key, what)
    items.synchronize(order)
    for key, (_, _, held, reason) in UNDECIDED.items():
        assert items.row("plain", key) == (held and (held, "1.00")), key
        assert items.decided("plain", key) == ({("quito", "publisher_rules", reason)} if reason else set()), (
            key
        )


def test_the_three_sample_resolvers_do_what_the_source_says(items: Published) -> None:
    """S4-048 to S4-059, S4-151, T15 (b), (c), (d). The originator gets the changed column as well.

    In the last rows Paris's edit stands at the publisher.
    """
    items.edit("quito", "first", 101, "insert", 3)
    items.edit("oslo", "first", 101, "insert", 5)
    for table, where in (("minimal", "oslo"), ("changed", "oslo"), ("changed", "paris")):
        for key, prices in enumerate([(5, 9), (9, 5), (5, 5)], start=20 if where == "paris" else 10):
            items.edit(where, table, key, "update", prices[0])
            items.edit("quito", table, key, "update", prices[1])
    items.synchronize()
    assert items.row("first", 101) == ("oslo", "5.00")
    assert [items.row("minimal", key) for key in (10, 11, 12)] == [
        ("oslo", "5.00"),
        ("quito", "5.00"),
        ("oslo", "5.00"),
    ]
    undecided = f"{CUSTOM.format('minimal_price')}: undecided; {WINS}"
    assert items.decided("minimal", 12) == {("quito", "publisher_rules", undecided)}
    for first in (10, 20):
        assert [items.row("changed", first + place) for place in range(3)] == [("quito", "5.00")] * 3


def test_old_values_merge_three_ways_and_the_publisher_has_what_both_changed(items: Published) -> None:
    """S4-073, S4-151, S4-152: by the resolvers that compare with the common version."""
    sites = items.network
    for key, ours, theirs in (
        (1, "name = 'oslo'", "price = 9"),
        (2, "price = 5", "name = 'quito', price = 9"),
    ):
        sites["oslo"].run(f"UPDATE merged SET {ours} WHERE item_id = {key}")
        sites["quito"].run(f"UPDATE merged SET {theirs} WHERE item_id = {key}")
    items.synchronize()
    assert [items.row("merged", key) for key in (1, 2)] == [("oslo", "9.00"), ("quito", "5.00")]
