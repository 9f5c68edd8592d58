"""Accounts whose months a procedure closes: London calls it, and Cape Town calls its own."""

from concord.values.identifier import parse_table_name
from tests.given.replicated_accounts import ACCOUNTS, Make
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLICATION, Site

#: Each account pays a fee, and has a movement of it.
CLOSE_MONTH = """
CREATE PROCEDURE close_month(month date, fee numeric) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE account SET balance = balance - fee;
  INSERT INTO movement (account, amount, note) SELECT id, -fee, 'fee of ' || month FROM account ORDER BY id;
END $$"""


def with_calls(replicated: Make, procedure: str = "public.close_month", *ddl: str) -> Replicated:
    """Ten accounts at both sites, and a procedure whose calls travel, which `ddl` makes; initialized."""
    made_by = (*ACCOUNTS, *(ddl or (CLOSE_MONTH,)))
    made = replicated(made_by, "public.account", "public.movement", procedures=(parse_table_name(procedure),))
    made.london.run("INSERT INTO account SELECT n, 'owner ' || n, 100 FROM generate_series(1, 10) n")
    made.initialize()
    return made


def let_an_application_call(site: Site) -> None:
    """A login without rights on anything of Concord's but the way to `concord.call`."""
    site.run(
        f"GRANT USAGE ON SCHEMA concord TO {APPLICATION}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON account, movement TO {APPLICATION}",
    )
