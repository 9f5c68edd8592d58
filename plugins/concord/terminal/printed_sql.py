"""The statements that make sites ready, for the DBA who runs them himself: printed, or one file a site."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from concord.messages.errors import ParametersRefused
from concord.messages.inert import inert
from concord.terminal.shown import notice, write


def print_sql(scripts: Iterable[tuple[str, str]]) -> None:
    """Each site's script behind its name. Raises ParametersRefused where a terminal would not show all of it."""
    for site, script in scripts:
        hidden = _hidden(site, script)
        if hidden and sys.stdout.isatty():
            raise ParametersRefused(f"{hidden}; no terminal shows it as it is: `--print-sql DIR`")
        if hidden:
            notice(hidden)
        write(f"-- site {site}\n{script}")


def write_sql(scripts: Iterable[tuple[str, str]], directory: Path) -> list[Path]:
    """`<site>.sql` for each site, as the directory's owner may read it. Raises ParametersRefused.

    A file of an earlier time is replaced: it is what another configuration needed.
    """
    made = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for site, script in scripts:
            path = directory / f"{site}.sql"
            path.write_text(script)
            made.append(path)
            if hidden := _hidden(site, script):
                notice(hidden)
    except OSError as error:
        raise ParametersRefused(f"--print-sql {directory}: {error.strerror or error}") from None
    return made


def _hidden(site: str, script: str) -> str | None:
    """The lines that hold what is not seen, in names of the site; statements cannot escape it."""
    lines = [str(at) for at, line in enumerate(script.split("\n"), 1) if inert(line) != line]
    if not lines:
        return None
    return (
        f"{site}: signs that are not seen stand in the script's lines {', '.join(lines)}; look at them first"
    )
