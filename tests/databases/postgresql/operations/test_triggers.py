"""The triggers of a publisher whose log cannot be had: made, checked, and taken away (S0-03)."""

from collections.abc import Callable

import pytest

from concord.databases import provisioning
from concord.messages.errors import ProvisioningRefused
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLICATION, APPLIER

TABLES = (
    "CREATE TABLE account (id int PRIMARY KEY, balance numeric)",
    "CREATE TABLE movement (id int PRIMARY KEY, account int REFERENCES account)",
)
TRIGGERS = "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgname LIKE 'RI\\_concord\\_%' ORDER BY 1, 2"
Make = Callable[..., Replicated]


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    """No login reads London's log."""
    return replicated(TABLES, "public.account", "public.movement", capture="triggers")


def test_operations_are_kept_as_users_do_them_and_users_cannot_touch_them(sites: Replicated) -> None:
    """S0-03; a user without a right on Concord's own writes, and each value comes through as text."""
    sites.london.run(f"GRANT INSERT, UPDATE, SELECT, TRUNCATE ON account, movement TO {APPLICATION}")
    sites.london.as_application(
        "SET DateStyle = 'German'; SET extra_float_digits = -15",
        "INSERT INTO account VALUES (1, 1.50)",
        "UPDATE account SET balance = 2",
        "TRUNCATE account, movement",
    )
    found = sites.london.rows(
        "SELECT relation::regclass::text, operation::text, before, after FROM concord.operation ORDER BY place"
    )
    assert found[:2] == [("account", "I", None, "(1,1.50)"), ("account", "U", "(1,1.50)", "(1,2)")]
    assert sorted(found[2:]) == [("account", "T", None, None), ("movement", "T", None, None)]
    for act in ("SELECT * FROM concord.operation", "DELETE FROM concord.operation"):
        with pytest.raises(Exception, match="permission denied"):
            sites.london.as_application(act)


def test_the_applier_sees_no_value_of_an_operation(sites: Replicated) -> None:
    """S0-43; it orders operations, and deletes them."""
    with sites.london.log_in(APPLIER) as applier:
        applier.execute("SELECT place, transaction, relation, at, bytes FROM concord.operation")
        with pytest.raises(Exception, match="permission denied"):
            applier.execute("SELECT before FROM concord.operation")


def test_a_provisioned_publisher_lacks_nothing_and_is_not_provisioned_twice(sites: Replicated) -> None:
    assert provisioning.check(sites.installations()) == []
    before = sites.london.rows("SELECT oid, xmin::text FROM pg_trigger WHERE tgname LIKE 'RI%'")
    sites.provision()
    assert sites.london.rows("SELECT oid, xmin::text FROM pg_trigger WHERE tgname LIKE 'RI%'") == before
    assert sites.capetown.rows(TRIGGERS) == []


def test_a_table_whose_operations_are_not_captured_is_named_and_mended(sites: Replicated) -> None:
    for done, said in {
        "DROP TABLE account CASCADE; CREATE TABLE account (id int PRIMARY KEY, balance numeric)": "lacks a trigger",
        "ALTER TABLE account DISABLE TRIGGER USER": "was altered",
        'DROP TRIGGER "RI_concord_truncate" ON account': "lacks a trigger",
        "ALTER TABLE account DROP balance; ALTER TABLE account ADD balance numeric": "has other columns",
    }.items():
        sites.london.run(done)
        found = provisioning.check(sites.installations())
        assert [line for line in found if "trigger" in line and "account" in line and said in line]
        sites.provision()
        assert provisioning.check(sites.installations()) == []


def test_triggers_go_with_the_replication_and_with_concord(sites: Replicated) -> None:
    sites.london.run("INSERT INTO account VALUES (1, 1)")
    assert len(sites.london.rows(TRIGGERS)) == 4
    sites.settings = {"capture": "log"}
    sites.provision()
    assert sites.london.rows(TRIGGERS) == []
    assert sites.london.value("SELECT count(*) FROM concord.operation") == 0
    sites.settings = {"capture": "triggers"}
    sites.provision()
    provisioning.remove(sites.installations())
    assert sites.london.rows(TRIGGERS) == []
    sites.london.run("INSERT INTO account VALUES (2, 1)")


def test_a_table_whose_order_triggers_cannot_tell_is_refused(sites: Replicated) -> None:
    for done, said, undone in (
        (
            "ALTER TABLE movement ALTER CONSTRAINT movement_account_fkey DEFERRABLE",
            "ALTER CONSTRAINT",
            "ALTER TABLE movement ALTER CONSTRAINT movement_account_fkey NOT DEFERRABLE",
        ),
        (
            'CREATE TRIGGER "Audit" AFTER INSERT ON account FOR EACH ROW EXECUTE FUNCTION'
            " suppress_redundant_updates_trigger()",
            "has the trigger Audit, which fires before",
            'ALTER TRIGGER "Audit" ON account RENAME TO audit',
        ),
    ):
        sites.london.run(done)
        with pytest.raises(ProvisioningRefused, match=said):
            sites.provision()
        sites.london.run(undone)
        sites.provision()
