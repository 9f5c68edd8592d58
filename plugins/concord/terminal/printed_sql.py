"""The statements that make sites ready, for the DBA who runs them himself: printed, or one file a site."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from concord.messages.errors import ParametersRefused


def print_sql(scripts: Iterable[tuple[str, str]]) -> None:
    """Each site's script behind its name."""
    for site, script in scripts:
        sys.stdout.write(f"-- site {site}\n{script}")


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
    except OSError as error:
        raise ParametersRefused(f"--print-sql {directory}: {error.strerror or error}") from None
    return made
