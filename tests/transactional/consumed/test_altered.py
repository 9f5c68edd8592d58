"""A table is altered while a consumer has its transactions before it."""

from tests.given.consumers import Consumer
from tests.given.replicated_accounts import Make, accounts


def test_each_read_has_the_columns_of_its_time(replicated: Make) -> None:
    """One read ends where the table was altered, and the next one goes on there."""
    sites = accounts(replicated)
    warehouse = Consumer(sites, f"{sites.name}w")
    sites.settings = {"consumers": (warehouse.name,)}
    sites.provision()
    warehouse.begin()
    sites.london.run(
        "UPDATE account SET balance = 1 WHERE id = 1",
        "ALTER TABLE account RENAME owner TO holder",
        "INSERT INTO movement (account) VALUES (1)",
        "UPDATE account SET balance = 2 WHERE id = 2",
    )
    rows = []
    for _ in range(3):
        read = warehouse.read(warehouse.level)
        columns = next(list(each.types) for each in read.tables if each.name == "public.account")
        rows += [(columns, each.row) for each in read.operations if each.table == "public.account"]
        warehouse.level = read.level
    assert rows == [
        (["id", "owner", "balance"], {"id": "1", "owner": "owner 1", "balance": "1"}),
        (["id", "holder", "balance"], {"id": "2", "holder": "owner 2", "balance": "2"}),
    ]
