"""The ledger entry of a row that had to give way to another row: both images, both versions, as they were before."""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.write.conflict_id import dot, loss_id
from concord.jobs.link import LinkJob
from concord.versions.conflict import ConflictType

#: The columns of each of the two in a relation of such rows, `w_` the winner and `l_` the loser.
_SIDE = ("origin", "changed_at", "derived", "vector", "deleted", "image")


def side(name: str, row: str) -> str:
    """The select list of one side, from a row that has these columns under their own names."""
    return ", ".join(f"{row}.{column} AS {name}_{column}" for column in _SIDE)


def present(name: str, shadow: str, *, deleted: bool = False) -> str:
    """The select list of one side's version, from a shadow row; where there is none, nobody ever changed the row."""
    found = (
        f"coalesce({shadow}.origin, '') AS {name}_origin, coalesce({shadow}.changed_at, 0) AS {name}_changed_at",
        f"coalesce({shadow}.derived, 0) AS {name}_derived, coalesce({shadow}.vector, '{{}}') AS {name}_vector",
        f"coalesce({shadow}.deleted, {literal(deleted)}) AS {name}_deleted",
    )
    return ", ".join(found)


def nobody(name: str, *, deleted: bool) -> str:
    """The select list of a side of which no version is known here."""
    return (
        f"'' AS {name}_origin, 0 AS {name}_changed_at, 0 AS {name}_derived, '{{}}'::jsonb AS {name}_vector,"
        f" {literal(deleted)} AS {name}_deleted"
    )


def by_another_table(rule: str) -> str:
    """The select list of what a row gave way by, to a row of another table: its reference (`rule_identity`) says to
    which."""
    return f"{literal(rule)} AS rule, '[]'::jsonb AS against"


def log(connection: Connection, job: LinkJob, kind: ConflictType, lost: str) -> int:
    """Log every row of the subquery `lost`: `table_name`, `key` (canonical, a JSON array), `resolver`, `reason`,
    and both sides. Two more columns are the `rule` as every site knows it (`rule_identity`), and the canonical key
    that it lost `against`. The latter is a JSON array, empty where that key is of another table. Returns how many
    of them did not stand there yet.

    The id is that of `loss_id`. The two versions are of different rows, and each may meet the other's key in a
    conflict of its own.
    """
    identity = loss_id("x.table_name", "x.key", dot("x.w_"), dot("x.l_"), (kind, "x.rule", "x.against"))
    return run(
        connection,
        f"""
INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver, reason,
       winner_site, loser_site, winner_version, loser_version, winner_row, loser_row)
SELECT {identity}, {literal(job.synchronization)}, {literal(job.link)}, {literal(job.transmission)}, x.table_name,
       x.key, {literal(kind)}, x.resolver, x.reason, {_site("w", job)}, {_site("l", job)}, {_version("w")},
       {_version("l")}, x.w_image, x.l_image
  FROM {lost} x ON CONFLICT (id) DO NOTHING""",
    )


def _site(name: str, job: LinkJob) -> str:
    """A row that nobody ever changed has no origin: it is the site's at which it was found."""
    return f"coalesce(nullif(split_part(x.{name}_origin, '#', 1), ''), {literal(job.target.name)})"


def _version(name: str) -> str:
    fields = ", ".join(f"{literal(field)}, x.{name}_{field}" for field in _SIDE if field != "image")
    return f"jsonb_build_object({fields})"
