"""PostgreSQL and Bucardo as Debian packages them: where they are, and what to install where they are not."""

import re
import shutil
from pathlib import Path

from concord.messages.errors import ConcordError

#: A directory for each version.
VERSIONS = Path("/usr/lib/postgresql")

#: The oldest that Concord works on, and what Debian 12 has.
OLDEST = 15


class NotInstalled(ConcordError):
    """Bucardo, or a PostgreSQL server with PL/Perl, in which its functions are written, is not on this machine."""


def newest_with_perl(versions: Path = VERSIONS) -> tuple[int, Path]:
    """Version and programs of a server in which Bucardo can be installed; raises NotInstalled."""
    servers = {int(path.name): path for path in versions.glob("*") if _is_server(path)}
    with_perl = [version for version, path in servers.items() if (path / "lib" / "plperl.so").exists()]
    if not with_perl or shutil.which("bucardo") is None:
        needed = max(with_perl, default=max(servers, default=OLDEST))
        raise NotInstalled(
            "this benchmark needs Bucardo and a PostgreSQL server with PL/Perl, and installs nothing itself."
            f" On Debian: apt-get install bucardo postgresql-plperl-{needed}"
        )
    newest = max(with_perl)
    return newest, servers[newest] / "bin"


def _is_server(path: Path) -> bool:
    numbered = re.fullmatch(r"\d+", path.name)
    return numbered is not None and int(path.name) >= OLDEST and (path / "bin" / "initdb").exists()
