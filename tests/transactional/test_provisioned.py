"""The needs of a replication at its two ends: what `provision` makes, and `provision --check` names."""

from collections.abc import Callable

import pytest

from concord.databases import provisioning
from concord.databases.postgresql.replication import standing
from concord.messages.errors import ConcordError, PrivilegeMissing, ProvisioningRefused
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLIER, READER

TABLE = ("CREATE TABLE account (id int PRIMARY KEY, balance numeric)",)
Make = Callable[..., Replicated]


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return replicated(TABLE, "public.account")


def test_a_provisioned_publisher_and_subscriber_lack_nothing(sites: Replicated) -> None:
    """S4-034, S4-035, S4-116, S4-117: a publication, rights to write the subscriber's tables, and its name."""
    assert sites.capetown.value("SELECT name FROM concord.site") == "capetown"
    assert provisioning.check(sites.installations()) == []


def test_a_table_that_left_the_publication_without_a_word_is_named(sites: Replicated) -> None:
    sites.london.run("DROP TABLE account", *TABLE)
    found = provisioning.check(sites.installations())
    assert any("public.account is not in the publication concord_operations" in line for line in found)
    sites.provision()
    assert provisioning.check(sites.installations()) == []


def test_a_right_that_the_subscriber_has_lost_is_named(sites: Replicated) -> None:
    sites.capetown.run("REVOKE UPDATE ON account FROM link_applier")
    [line] = provisioning.check(sites.installations())
    assert "capetown: the login link_applier lacks UPDATE on table public.account" in line


def test_each_right_on_the_level_is_needed_and_the_refusal_names_it(sites: Replicated) -> None:
    """S0-43: the applier writes the level, and `status` reads it."""
    for right in ("SELECT", "INSERT", "UPDATE"):
        sites.capetown.run(f"REVOKE {right} ON concord.replay FROM {APPLIER}")
        with pytest.raises(PrivilegeMissing, match="replay"):
            sites.initialize()
        sites.capetown.run(f"GRANT {right} ON concord.replay TO {APPLIER}")
    sites.initialize()

    sites.capetown.run(f"REVOKE SELECT ON concord.replay FROM {READER}")
    with pytest.raises(ConcordError, match="replay"):
        standing.level(sites.job())


def test_a_log_reader_without_replication_or_none_at_all_is_refused(sites: Replicated) -> None:
    with pytest.raises(ProvisioningRefused, match=f"the login {READER} has no REPLICATION"):
        provisioning.provision(sites.installations(READER))
    with pytest.raises(ProvisioningRefused, match="name the connection of a login with REPLICATION"):
        provisioning.provision(sites.installations(""))


TRIGGER = (
    "CREATE FUNCTION rounded() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.balance := round(NEW.balance);"
    " RETURN NEW; END$$",
    "CREATE TRIGGER rounded {time} INSERT OR UPDATE ON account FOR EACH ROW {when} EXECUTE FUNCTION rounded()",
    "ALTER TABLE account ENABLE ALWAYS TRIGGER rounded",
)


def give_trigger(sites: Replicated, time: str, when: str = "") -> None:
    """To the subscriber's table; it fires although Concord writes."""
    function, trigger, enabled = TRIGGER
    sites.capetown.run(function, trigger.format(time=time, when=when), enabled)


@pytest.mark.parametrize(
    "settings", [{"updates": "both"}, {"updates": "queued"}, {"conversions": "refuse"}], ids=str
)
def test_a_trigger_that_may_change_what_is_replayed_is_refused_where_rows_are_compared(
    replicated: Make, settings: dict[str, str]
) -> None:
    """F49: the row would not be as at the publisher, and the next operation on it would stop."""
    sites = replicated(TABLE, "public.account", **settings)
    give_trigger(sites, "BEFORE")
    with pytest.raises(
        ProvisioningRefused, match=r"capetown: public\.account has the trigger rounded \(BEFORE"
    ):
        sites.provision()


def test_a_trigger_that_may_change_a_copy_is_named(sites: Replicated) -> None:
    give_trigger(sites, "BEFORE")
    [line] = [each for each in provisioning.notices(sites.installations()) if "trigger rounded" in each]
    assert "may change rows that are replayed" in line
    assert line.startswith("capetown: public.account")


def test_a_trigger_that_repeats_what_the_publisher_did_is_named(sites: Replicated) -> None:
    give_trigger(sites, "AFTER")
    [line] = [each for each in provisioning.notices(sites.installations()) if "trigger rounded" in each]
    assert "which fires for what Concord writes too" in line


def test_a_trigger_that_asks_whose_write_it_is_may_fire(replicated: Make) -> None:
    sites = replicated(TABLE, "public.account", updates="both")
    give_trigger(sites, "BEFORE", "WHEN (current_setting('concord.applying', true) IS DISTINCT FROM 'on')")
    sites.provision()
    assert not [each for each in provisioning.notices(sites.installations()) if "rounded" in each]
