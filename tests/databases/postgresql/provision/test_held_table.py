"""A transaction that keeps `provision` from a table is named: nothing is written, and a person knows whom to ask."""

import pytest

from concord.databases import provisioning
from concord.messages.errors import ProvisioningRefused
from tests.given.bare_sites import Bare, installation
from tests.given.site import every_table, make_tables


@pytest.mark.parametrize("statement", ["LOCK TABLE book IN SHARE MODE", "UPDATE book SET id = 2"])
def test_whoever_holds_a_table_is_named(sites: Bare, statement: str) -> None:
    london = sites.london
    make_tables(london, ("CREATE TABLE book (id int PRIMARY KEY)", "INSERT INTO book VALUES (1)"))
    wanted = installation(london, every_table(london))
    with london.log_in("postgres", autocommit=False) as user:
        user.execute("SET application_name = 'nightly'")
        user.execute(statement.encode())
        holder = f"process {user.info.backend_pid} \\(user postgres, application nightly, since 20"
        with pytest.raises(
            ProvisioningRefused, match=rf"public\.book is held by {holder}.*try again when it has"
        ):
            provisioning.provision([wanted])
    assert london.value("SELECT to_regclass('concord.site')") is None
    provisioning.provision([wanted])
