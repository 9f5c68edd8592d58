"""The pages of the maintenance DAGs in Airflow."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk import Param

from concord.orchestration.dags.page import page

_Params = Mapping[str, Param]


def initialize_page(name: str, description: str, params: _Params) -> str:
    """Of `initialize__<name>`."""
    return page(
        [
            description,
            "No link runs before its tables are initialized. The run holds the lease of the synchronization, so that no"
            " link runs meanwhile. A run that was killed goes on where it was when it is repeated.",
        ],
        "by hand: once, after a table was added, and when a site must be brought back. By itself where a conflict asks"
        " for it.",
        [
            "the end of this task's log: rows per table, and how each was initialized;",
            f"`python -m concord status`, then the DAG `synchronize__{name}`;",
            "`docs/initialization.md` in Concord's directory.",
        ],
        params,
    )


def compare_page(name: str, description: str, params: _Params) -> str:
    """Of `compare__<name>`."""
    meanwhile = "A comparison writes nothing, and links go on meanwhile."
    repair = "A repair holds the lease of the synchronization."
    return _compare_page(name, [description, f"{meanwhile} {repair}"], params)


def compare_replication_page(name: str, description: str, params: _Params) -> str:
    """Of `compare__<name>` of a replication."""
    meanwhile = (
        "Whatever waits is replayed first, by a run of its own unless one is on. Runs go on meanwhile."
    )
    return _compare_page(name, [description, meanwhile], params)


def _compare_page(name: str, acts: list[str], params: _Params) -> str:
    return page(
        acts,
        "by hand alone.",
        [
            "the end of this task's log: rows and differences per table;",
            f"`python -m concord compare {name}`, which lists the keys that differ;",
            "`docs/compare.md` in Concord's directory.",
        ],
        params,
    )


def provision_page(params: _Params) -> str:
    """Of `provision`."""
    return page(
        [
            "Makes every site of the configuration ready: schema `concord`, its capture triggers, and the grants of"
            " both logins. It may be repeated, and users may write meanwhile."
        ],
        "by hand: first of all, after the configuration or a table was changed, and after an upgrade of Concord.",
        [
            "the task's log, which names what is missing, site by site;",
            "`python -m concord provision --print-sql` for a DBA who runs the statements himself;",
            "the DAG `initialize__<name>` of each synchronization that is new.",
        ],
        params,
    )


def log_purge_page(params: _Params) -> str:
    """Of `log_purge`."""
    return page(
        [
            "Deletes conflicts, runs, transmissions and comparisons older than `retention` allows, and staging tables"
            " that killed runs left behind.",
            "Confirms the log of each replication in which nothing waits, and gives up one beyond its `max_delta`.",
            "Looks whether links miss their objective while no run of theirs ends.",
        ],
        "each quarter of an hour it asks whether `retention.purge_schedule` is due; if not, the task is skipped. By"
        " hand at any time.",
        [
            "the end of the task's log: what went, at the repository and at each site;",
            "`docs/ledger.md` in Concord's directory, for what is kept how long.",
        ],
        params,
    )


def tombstone_cleanup_page(params: _Params) -> str:
    """Of `tombstone_cleanup`."""
    return page(
        [
            "Forgets the tombstones of deleted rows, and the versions of rows that nobody has edited for"
            " `retention.versions`, once every link of every site has passed them: everywhere or nowhere."
        ],
        "by `retention.cleanup_schedule`, daily by default, and by hand.",
        [
            "the end of the task's log: tombstones and row versions per site and table, and who holds each back;",
            "`python -m concord tombstones`, which shows the same and removes nothing;",
            "`docs/topologies.md` in Concord's directory, for a site that stays away.",
        ],
        params,
    )
