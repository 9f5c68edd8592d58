"""The command line that starts a driver's Java: asked of Spark's own launcher once, then remembered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from concord.cache import cache
from spark_jobs.submit import without

_MAIN = "org.apache.spark.deploy.SparkSubmit"
#: It only speeds up some linear algebra, and with it Java takes less out of an archive.
_UNUSED_MODULE = "--add-modules=jdk.incubator.vector"
#: A jar that brings functions of machine learning into every session, which takes two seconds of its start.
_UNUSED_JAR = "spark-mllib_"
#: Options that name this submission and change nothing of how Java is started.
_OF_THE_SUBMISSION = ("--name", "--py-files")
_REMEMBERED = 20


@dataclass(frozen=True, slots=True)
class JavaCommand:
    """How to start Java, without the options of spark-submit that follow."""

    words: tuple[str, ...]  #: the program, its options, the main class
    classes: str  #: names the archive: the same as long as Java and Spark's jars are

    @property
    def archive(self) -> Path:
        """Where the classes that Java loads for Spark are kept."""
        return cache() / f"classes-{self.classes}.jsa"

    @property
    def base(self) -> Path:
        """Where Java's own classes are kept, which that archive builds upon, if Java has come without them."""
        return cache() / f"base-{_digest(_stated(*_identity(self.words[0])))}.jsa"


def spark_environment() -> dict[str, str]:
    """What Spark's scripts would set."""
    home = os.environ.get("SPARK_HOME") or _find_spark_home()
    configuration = os.environ.get("SPARK_CONF_DIR") or str(Path(home, "conf"))
    return {"SPARK_HOME": home, "SPARK_CONF_DIR": configuration, "SPARK_CONNECT_MODE": "0"}


def java_command(options: Sequence[str]) -> JavaCommand | None:
    """The command for these options of spark-submit; None where only Spark's scripts know how to start Java."""
    environment = spark_environment()
    jars, configuration = Path(environment["SPARK_HOME"], "jars"), Path(environment["SPARK_CONF_DIR"])
    java = _java()
    if java is None or not jars.is_dir() or (configuration / "spark-env.sh").exists():
        return None
    asked = without(list(options), *_OF_THE_SUBMISSION)
    spark = {name: value for name, value in os.environ.items() if name.startswith("SPARK_")} | environment
    known = cache() / f"command-{_digest(java, asked, spark, _stated(jars, configuration, java))}.json"
    if known.exists():
        words, classes = json.loads(known.read_text())
        return JavaCommand(tuple(words), classes)
    words = _asked(java, jars, asked, environment)
    if words is None:
        return None
    command = _arranged(words)
    _remember(known, command)
    return command


def _remember(place: Path, command: JavaCommand) -> None:
    """Whole or not at all, since others read it at the same time; commands of long ago go."""
    beside = place.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps([command.words, command.classes]))
    beside.rename(place)
    newest_first = sorted(place.parent.glob("command-*.json"), key=os.path.getmtime, reverse=True)
    for old in newest_first[_REMEMBERED:]:
        old.unlink(missing_ok=True)


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java")


def _stated(*places: str | Path) -> list[object]:
    """What would change if a file were another: Spark's jars, its configuration, Java."""
    files = [
        f for place in map(Path, places) for f in (sorted(place.iterdir()) if place.is_dir() else [place])
    ]
    found = [(str(file), file.stat()) for file in files if file.exists()]
    return [(name, state.st_size, state.st_mtime_ns) for name, state in found]


def _asked(java: str, jars: Path, options: Sequence[str], environment: dict[str, str]) -> list[str] | None:
    """What Spark's launcher answers: the words of the command, up to the main class."""
    scala = next(jars.glob("scala-library-*.jar")).stem.split("-")[2].rsplit(".", 1)[0]
    answer = subprocess.run(
        [java, "-Xmx128m", "-cp", f"{jars}/*", "org.apache.spark.launcher.Main", _MAIN, *options],
        env=os.environ | environment | {"SPARK_SCALA_VERSION": scala},
        capture_output=True,
        check=False,
    )
    # As spark-class reads it: an empty line, then words that end in NUL.
    words = answer.stdout.decode().partition("\0\n")[2].split("\0")
    return words[: words.index(_MAIN) + 1] if answer.returncode == 0 and _MAIN in words else None


def _arranged(words: list[str]) -> JavaCommand:
    """Without what is not used; every jar by name, and directories last, where an archive takes no notice of them."""
    words = [word for word in words if word != _UNUSED_MODULE]
    at = words.index("-cp") + 1
    places = dict.fromkeys(place for entry in words[at].split(os.pathsep) for place in _expanded(entry))
    jars = [place for place in places if place.endswith(".jar")]
    used = [jar for jar in jars if not Path(jar).name.startswith(_UNUSED_JAR)]
    words[at] = os.pathsep.join([*used, *(place for place in places if place not in jars)])
    return JavaCommand(tuple(words), _digest(used, _stated(*_identity(words[0]), *used)))


def _identity(program: str) -> tuple[Path, Path]:
    """Files that another Java would have otherwise: the program may only lead to a Java that was exchanged."""
    return Path(program), Path(program).parent.parent / "release"


def _expanded(entry: str) -> list[str]:
    directory, star = entry[:-1], entry.endswith("*")
    return sorted(map(str, Path(directory).glob("*.jar"))) if star else [entry]


def _digest(*parts: object) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]
