"""The logins of a site, before Concord is there: what a person's own script makes in a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import shortened
from concord.values.identifier import TableName

INSTALLER, READER, APPLIER = LOGINS = ("concord_installer", "concord_reader", "concord_applier")
LOG_READER = "concord_log_reader"  #: at a site that publishes its transactions


def name_of(login: str, database: str) -> str:
    """The login's name for this database: logins belong to a whole server, which may hold several sites."""
    return shortened(f"{login}_of_{database}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of which database, for which tables, with which passwords."""

    database: str
    tables: Sequence[TableName]
    passwords: Mapping[str, str]  #: by login; those of `LOGINS`, and of the log's reader where one is wanted
