"""A disk of 20 MB, on which a site keeps a table: it fills up, and somebody makes room."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.given.site import Site

SIZE = 20 << 20
#: A file of somebody else's.
BALLAST = 17 << 20


@contextmanager
def on_small_disk(site: Site, table: str) -> Iterator[Path]:
    """The table lies there, beside a file that leaves little room until it is removed: yields its path."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a disk in memory")
    name = f"small_{uuid.uuid4().hex[:12]}"
    place = Path("/var/tmp") / name  # noqa: S108 - the server's own user must reach it
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", place], check=True)
    ballast = place / "ballast"
    owner = Path(site.value("SHOW data_directory")).stat()
    os.chown(place, owner.st_uid, owner.st_gid)
    site.run(f"CREATE TABLESPACE {name} LOCATION '{place}'", f"ALTER TABLE {table} SET TABLESPACE {name}")
    try:
        ballast.write_bytes(bytes(BALLAST))
        yield ballast
    finally:  # the server must not lose a disk that it writes to
        ballast.unlink(missing_ok=True)
        site.run(f"ALTER TABLE {table} SET TABLESPACE pg_default", f"DROP TABLESPACE {name}")
        subprocess.run(["umount", place], check=True)
        place.rmdir()
