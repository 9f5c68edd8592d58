"""Provision several sites together: every problem of every site first, then each site in one transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from concord.databases.postgresql import preflight
from concord.databases.postgresql import provision as site_provision
from concord.databases.postgresql.provision import SiteState
from concord.databases.postgresql.session import Connection, connect
from concord.errors import ProvisioningRefused
from concord.replication_set import ReplicatedTable
from concord.site import Credentials
from concord.structure import Structure, differences


@dataclass(frozen=True, slots=True)
class Installation:
    """What one site is to carry, through which three logins (installer, reader, applier)."""

    site: str
    installer: Credentials
    reader: str
    applier: str
    tables: tuple[ReplicatedTable, ...]
    max_clock_skew: float = 60.0


@dataclass(frozen=True, slots=True)
class _Surveyed:
    installation: Installation
    connection: Connection
    state: SiteState


@contextmanager
def _survey(installations: Sequence[Installation]) -> Iterator[list[_Surveyed]]:
    """Every site looked at, through its installer. Raises SiteUnavailable or ConnectionRefused."""
    with ExitStack() as stack:
        surveyed = []
        for each in installations:
            connection = stack.enter_context(connect(each.installer, "concord provision"))
            state = site_provision.read_site(connection, each.site, each.tables, time.time())
            surveyed.append(_Surveyed(each, connection, state))
        yield surveyed


def _problems(surveyed: Sequence[_Surveyed]) -> list[str]:
    found: list[str] = []
    for each in surveyed:
        wanted = each.installation
        found += site_provision.problems(each.state, wanted.reader, wanted.applier, each.connection)
    skew = {each.installation.site: each.installation.max_clock_skew for each in surveyed}
    found += preflight.pair_problems([each.state.facts for each in surveyed], skew)
    return found + list(_differences(surveyed))


def _differences(surveyed: Sequence[_Surveyed]) -> Iterator[str]:
    """Each site's tables against the first site that carries them."""
    first: dict[str, Structure] = {}
    for each in surveyed:
        for wanted in each.installation.tables:
            if (structure := each.state.structure(wanted)) is None:
                continue
            if wanted.name in first:
                yield from differences(wanted.name, first[wanted.name], structure)
            first.setdefault(wanted.name, structure)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        raise ProvisioningRefused(f"nothing was written, because:\n{lines}", problems=tuple(problems))


def provision(installations: Sequence[Installation]) -> None:
    """Make every site ready. Raises ProvisioningRefused with one line per problem; then nothing was written."""
    with _survey(installations) as surveyed:
        _refuse(_problems(surveyed))
        for each in surveyed:
            site_provision.provision(
                each.connection, each.state, each.installation.reader, each.installation.applier
            )


def sql(installations: Sequence[Installation]) -> dict[str, str]:
    """The same, as a script per site for a DBA to run. Raises ProvisioningRefused."""
    with _survey(installations) as surveyed:
        _refuse(_problems(surveyed))
        return {
            each.installation.site: _script(
                site_provision.statements(each.state, each.installation.reader, each.installation.applier)
            )
            for each in surveyed
        }


def _script(statements: Sequence[str]) -> str:
    body = "\n".join(f"{statement.strip()};" for statement in statements)
    return f"BEGIN;\n{body}\nCOMMIT;\n"


def check(installations: Sequence[Installation]) -> list[str]:
    """What is missing, altered or dangerous, each one line; an empty list when all is well. Reads only."""
    with _survey(installations) as surveyed:
        found = _problems(surveyed)
        for each in surveyed:
            found += site_provision.check(each.state)
            if each.state.facts.provisioned_as is not None:
                found += [
                    f"{each.installation.site}: the applier {each.installation.applier} may write {table},"
                    " which no link does; revoke it"
                    for table in site_provision.writable_elsewhere(each.connection, each.installation.applier)
                ]
        return found


def remove(installations: Sequence[Installation]) -> None:
    """Take Concord off every site; replicated tables and their rows stay."""
    with _survey(installations) as surveyed:
        for each in surveyed:
            site_provision.remove_now(each.connection, each.state)
