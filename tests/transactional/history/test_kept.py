"""A history beside the other settings of a replication, its rights, and people's decisions (S0-49)."""

from functools import partial

import pytest

from concord.databases import provisioning
from concord.databases.registry import dialect
from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import ConcordError, EntryRefused, ProvisioningRefused
from concord.tables.manipulation import Manipulation, Rename
from concord.tables.privacy import Treatment
from concord.tables.replication_set import ReplicatedTable
from concord.transactional.upkeep import shown
from tests.given.killed_process import killed_at
from tests.given.refused_entry import stopped_at
from tests.given.replicated_accounts import Make
from tests.given.replicated_history import HISTORY, TABLE, histories, versions
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLIER, READER

STEPS = [("open", 1), ("stage", 1), ("replay", 1), ("replay", 3), ("confirm", 1)]


def test_the_applier_may_append_and_nothing_more(replicated: Make) -> None:
    """S0-43: neither login changes a version, or takes one away."""
    sites = histories(replicated)
    rights = {
        login: [
            right
            for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")
            if sites.capetown.value(
                f"SELECT has_table_privilege('{login}', 'reports.account_history', '{right}')"
            )
        ]
        for login in (READER, APPLIER)
    }
    assert rights == {READER: ["SELECT"], APPLIER: ["SELECT", "INSERT"]}
    assert list(provisioning.check(sites.installations())) == []


@pytest.mark.parametrize(
    ("altered", "message"),
    [
        ("DROP version, ADD PRIMARY KEY (id)", "lacks the column version of a history; add it as bigint"),
        ("ALTER version TYPE int", "version is integer, and a history has it as bigint"),
        (
            "DROP CONSTRAINT account_history_pkey, ADD PRIMARY KEY (id)",
            "no primary key with version in it",
        ),
    ],
)
def test_a_table_that_counts_no_versions_is_refused(replicated: Make, altered: str, message: str) -> None:
    """By one clear sentence, before anything is written."""
    sites = histories(replicated)
    sites.capetown.run(f"ALTER TABLE reports.account_history {altered}")
    with pytest.raises(ProvisioningRefused, match=message):
        sites.provision()


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("ALTER TABLE account ADD COLUMN version int", "the publisher's table has a column version"),
        (
            "CREATE UNIQUE INDEX ON reports.account_history (id, entry)",
            "which another version of a row breaks",
        ),
        (
            "ALTER TABLE reports.account_history DROP CONSTRAINT account_history_pkey,"
            " ADD PRIMARY KEY (version, entry)",
            r"needs the primary key \(id, version\)",
        ),
        ("ALTER TABLE reports.account_history ALTER owner TYPE int USING 0", "of another type"),
        ("ALTER TABLE reports.account_history ADD city text NOT NULL", "city has no default"),
    ],
)
def test_a_history_into_which_versions_do_not_fit_is_refused(
    replicated: Make, ddl: str, message: str
) -> None:
    sites = histories(replicated)
    (sites.london if "account ADD" in ddl else sites.capetown).run(ddl)
    if "account ADD" in ddl:
        sites.provision()
    with pytest.raises(ConcordError, match=message):
        sites.initialize()


def test_rows_are_chosen_and_columns_are_named_otherwise(replicated: Make) -> None:
    """A row that leaves the filter is deleted here, as far as the history knows."""
    renamed = Manipulation(operations=(Rename(canonical=("balance",), own=("amount",)),))
    table = ReplicatedTable(
        table=TABLE,
        where="balance < 100",  # type: ignore[arg-type] # read by pydantic
        manipulations={"capetown": renamed},
    )
    history = (HISTORY[0], HISTORY[1].replace("balance", "amount"))
    sites = histories(replicated, table=table, history=history)
    sites.initialize()
    sites.london.run(
        "INSERT INTO account VALUES (1, 'Ann', 1), (2, 'Bob', 200)", "UPDATE account SET balance = 300"
    )
    sites.run()
    assert sites.capetown.rows(
        "SELECT id, version, operation, amount FROM reports.account_history ORDER BY 1, 2"
    ) == [(1, 1, "I", 1), (1, 2, "D", 1)]


def test_columns_that_do_not_travel_are_in_no_version(replicated: Make) -> None:
    table = ReplicatedTable(table=TABLE, columns=("id", "owner"))
    sites = histories(replicated, table=table)
    sites.initialize()
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1)")
    sites.run()
    assert versions(sites) == [(1, 1, "I", "Ann", None)]


def stopped(replicated: Make, **settings: object) -> tuple[Replicated, int]:
    """At a transaction of which one row is too much for Cape Town; with its number."""
    sites = histories(replicated, **settings)
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1), (2, 'Bob', 2)")
    sites.initialize()
    sites.london.run("UPDATE account SET balance = 2 WHERE id = 1")
    sites.run()
    sites.capetown.run("ALTER TABLE reports.account_history ADD CHECK (balance < 100)")
    with sites.london.log_in(sites.london.superuser, autocommit=False) as user:
        user.execute("UPDATE account SET balance = 5 WHERE id = 1")
        user.execute("UPDATE account SET balance = 500 WHERE id = 2")
        user.commit()
    with pytest.raises(EntryRefused, match="at operation 2 of 2") as refused:
        sites.run()
    return sites, stopped_at(refused.value)


@pytest.mark.parametrize("how", list(Aside))
def test_a_person_sees_a_refused_entry_and_lets_it_pass(replicated: Make, how: Aside) -> None:
    """S2-22: the version that it meets is the newest one. A quarantine appends what can be appended."""
    sites, number = stopped(replicated)
    [first, second] = shown(sites.job(), dialect, number)
    assert (first.here or {}) == {"id": 1, "owner": "Ann", "balance": 2}
    assert (second.row or {})["balance"] == 500
    sites.run(set_aside=SetAside(number=number, how=how, reason="too much", by="me"))
    kept = [(1, 3, "U", "Ann", 5)] if how is Aside.QUARANTINE else []
    before = [(1, 1, "I", "Ann", 1), (1, 2, "U", "Ann", 2)]
    assert versions(sites) == [*before, *kept, (2, 1, "I", "Bob", 2)]


def test_private_values_are_in_versions_and_in_no_message(replicated: Make) -> None:
    table = ReplicatedTable(table=TABLE, private={"owner": Treatment.DROPPED})
    sites, number = stopped(replicated, table=table)
    assert all("owner" not in (each.here or {}) for each in shown(sites.job(), dialect, number))
    assert [owner for _, _, _, owner, _ in versions(sites)] == ["Ann", "Ann", "Bob"]


@pytest.mark.parametrize(("step", "occurrence"), STEPS)
def test_a_killed_run_doubles_no_version_and_leaves_none_out(
    replicated: Make, step: str, occurrence: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-10."""
    monkeypatch.setattr("concord.databases.postgresql.entries.from_log.OPERATIONS", 10)
    sites = histories(replicated)
    sites.initialize()
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 0)")
    sites.london.run(*(f"UPDATE account SET balance = {n}" for n in range(1, 60)))
    assert killed_at(step, sites.run, occurrence)
    sites.london.run("UPDATE account SET balance = 60")
    sites.run()
    assert versions(sites) == [(1, n + 1, "U" if n else "I", "Ann", n) for n in range(61)]


def test_a_killed_copy_leaves_no_version(replicated: Make) -> None:
    sites = histories(replicated)
    sites.london.run("INSERT INTO account VALUES (1, 'Ann', 1)")
    assert killed_at("copy", partial(sites.run, initialize=True))
    assert versions(sites) == []
    sites.initialize()
    assert versions(sites) == [(1, 1, "I", "Ann", 1)]
