"""The script that `provision --print-sql` prints for a site: the superuser's, run once, or the installer's."""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.session import PINNED
from concord.databases.postgresql.provision.admission import Admission

#: As in connections of Concord's own. With another path, operators of others could stand in for PostgreSQL's.
_SETTINGS = tuple(
    f"SET LOCAL {name} = {literal(PINNED[name])}"
    for name in ("standard_conforming_strings", "search_path", "client_min_messages")
)


def for_a_superuser(lacked: Admission) -> str:
    """The statements that give the installer the rights it lacks."""
    return _script(f"A superuser runs this once; then {lacked.installer} provisions.", lacked.statements)


def for_the_installer(installer: str, statements: Sequence[str]) -> str:
    """The statements that `provision` would run. No superuser runs it where the installer is none: tables run code
    of their owners. To become the installer for a while (SET ROLE) does not help, since that code may end it (RESET
    ROLE)."""
    about = f"{installer} runs this, as `provision` would."
    return _script(about, [_no_superuser_instead_of(installer), *statements])


def _no_superuser_instead_of(installer: str) -> str:
    said = literal(f"let {installer} run this: a superuser would run what others have put into tables")
    is_superuser = "SELECT bool_or(rolsuper) FROM pg_roles WHERE rolname ="
    block = f"""
BEGIN
  IF ({is_superuser} current_user) AND NOT ({is_superuser} {literal(installer)}) THEN
    RAISE EXCEPTION USING MESSAGE = {said};
  END IF;
END"""
    return f"DO {literal(block)}"


def _script(about: str, statements: Sequence[str]) -> str:
    body = "\n".join(f"{statement.strip()};" for statement in (*_SETTINGS, *statements))
    return f"-- {about}\nBEGIN;\n{body}\nCOMMIT;\n"
