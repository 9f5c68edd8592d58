"""A site: a database whose rows may be changed by its own users, and how to reach it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_serializer

#: libpq parameters that a connection's extra may set. Anything else could load code or read files.
ALLOWED_OPTIONS = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "connect_timeout"})


class Credentials(BaseModel):
    """How one login reaches one database. The password never shows in a repr or a log."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dialect: str = "postgresql"  #: which kind of database, as the registry calls it
    host: str
    port: int = 5432
    database: str
    user: str
    password: SecretStr = SecretStr("")
    options: Mapping[str, str] = Field(default_factory=dict)
    connection: str = ""  #: the Airflow connection that says so

    @property
    def known_as(self) -> str:
        """The setting that a person has to mend where this login fails."""
        if self.connection:
            return f"the Airflow connection {self.connection}"
        return f"the login {self.user}@{self.host}:{self.port}/{self.database}"

    @field_serializer("password", when_used="json")
    def _reveal(self, password: SecretStr) -> str:
        """Only `model_dump_json` of the job file (mode 0600) reveals it."""
        return password.get_secret_value()


class Capture(StrEnum):
    """How changes of users are found (S0-03, S1-32)."""

    LOG = "log"  #: in the database's own log, by a login that may read it
    TRIGGERS = "triggers"  #: by triggers in each user's transaction


class SiteAccess(BaseModel):
    """A link's facts about one end: its logins, and its limits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    dialect: str = "postgresql"
    readers: int = Field(default=2, ge=1)
    max_clock_skew: float = Field(default=60.0, gt=0)  #: seconds
    reader: Credentials
    applier: Credentials
    log_reader: Credentials | None = None  #: reads every table of its server; None where triggers capture


def is_local(host: str) -> bool:
    """True for this very machine: a socket directory or a loopback address."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def origin(site: str, incarnation: int) -> str:
    """`london#2`: the site's life between restores, as every version and vector names it."""
    return f"{site}#{incarnation}"
