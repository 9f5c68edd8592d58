"""docker-compose.yaml: what it promises without a Docker engine to try it on."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from concord.configuration import configuration as config
from spark_jobs.connect_server import PORT
from tests.deployment.compose_file import (
    PROJECT,
    REQUIRED,
    TEXT,
    connections,
    one_shot,
    references,
    rendered,
    required_variables,
    services,
    value_of,
)

SECRET_NAME = re.compile(r"PASSWORD$|SECRET$|_KEY$")
SHARED_BY_AIRFLOW = (
    "AIRFLOW__CORE__FERNET_KEY",
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
    "AIRFLOW__API__SECRET_KEY",
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
)
SITES = ("london", "capetown")


def networks(service: dict[str, Any]) -> set[str]:
    return set(service["networks"])


def compose_command() -> list[str] | None:
    """Debian's docker-compose, or the plugin of Docker itself; None where neither is installed."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    plugin = ["docker", "compose"]
    if shutil.which("docker") is None:
        return None
    answer = subprocess.run([*plugin, "version"], capture_output=True, check=False)
    return plugin if answer.returncode == 0 else None


# Secrets


def test_every_variable_is_required_and_none_has_a_default() -> None:
    assert references()
    assert [reference for reference in references() if not REQUIRED.fullmatch(reference)] == []


def test_every_secret_of_a_service_comes_from_a_variable() -> None:
    values = {value_of(variable) for variable in required_variables()}
    found = [
        (name, variable)
        for name, service in services().items()
        for variable, value in service.get("environment", {}).items()
        if SECRET_NAME.search(variable) and value not in values
    ]
    assert found == []
    assert all(
        given["password"] in values for name, given in connections().items() if name != "spark_default"
    )


def test_a_url_holds_no_written_password() -> None:
    assert re.findall(r"://\w+:(?!\$\{)[^/@]*@", TEXT) == []


def test_the_example_names_exactly_the_required_variables_and_fills_in_none() -> None:
    lines = [line for line in (PROJECT / ".env.example").read_text().splitlines() if line and line[0] != "#"]
    assert sorted(lines) == sorted(f"{variable}=" for variable in required_variables())


def test_git_ignores_the_file_of_secrets() -> None:
    assert {".env", "/.env"} & set((PROJECT / ".gitignore").read_text().splitlines())


# Services


def test_every_service_has_a_health_check_unless_it_runs_once() -> None:
    unchecked = {name for name, service in services().items() if "healthcheck" not in service}
    assert unchecked == {name for name in services() if one_shot(name)} == {"airflow-init"}


def test_every_service_restarts_unless_it_runs_once() -> None:
    policies = {name: service["restart"] for name, service in services().items()}
    assert policies == {name: "no" if one_shot(name) else "unless-stopped" for name in services()}


def test_nothing_starts_before_what_it_needs_is_healthy() -> None:
    waits = {
        (name, needed, wait["condition"])
        for name, service in services().items()
        for needed, wait in service.get("depends_on", {}).items()
    }
    right = {True: "service_completed_successfully", False: "service_healthy"}
    assert {
        (name, needed) for name, needed, condition in waits if condition != right[one_shot(needed)]
    } == set()
    assert all(
        (name, "airflow-init") in {wait[:2] for wait in waits}
        for name in services("airflow-")
        if name != "airflow-init"
    )


def test_airflow_runs_all_its_processes() -> None:
    processes = {name.removeprefix("airflow-") for name in services("airflow-")}
    assert processes == {"init", "apiserver", "scheduler", "dag-processor", "triggerer"}
    assert services()["airflow-scheduler"]["environment"]["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"


def test_airflow_and_spark_run_one_image() -> None:
    ours = services("airflow-") | services("spark-")
    assert {(service["image"], service["build"]) for service in ours.values()} == {
        ("concord-airflow:3.3.2", ".")
    }
    assert {"spark-master", "spark-worker"} < set(ours)


def test_all_airflow_services_have_the_same_environment() -> None:
    environments = {name: dict(service["environment"]) for name, service in services("airflow-").items()}
    del environments["airflow-init"]["AIRFLOW_ADMIN_PASSWORD"]  # it alone writes the password file
    common = environments.pop("airflow-init")
    assert all(environment == common for environment in environments.values())
    assert set(SHARED_BY_AIRFLOW) <= set(common)


def test_spark_services_hold_no_secret_but_spark_s_own() -> None:
    for service in services("spark-").values():
        held = {
            variable for variable, value in service["environment"].items() if value.startswith("value-of-")
        }
        assert "_SPARK_AUTH_SECRET" in held
        assert held <= {"_SPARK_AUTH_SECRET", "SPARK_CONNECT_AUTHENTICATE_TOKEN"}


def test_airflow_holds_no_secret_of_the_cluster_s() -> None:
    assert "_SPARK_AUTH_SECRET" not in services()["airflow-scheduler"]["environment"]


def test_ports_are_reachable_from_this_machine_alone() -> None:
    ports = {port for service in services().values() for port in service.get("ports", [])}
    assert ports
    assert [port for port in ports if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)] == []


def test_image_tags_are_exact_versions() -> None:
    images = {service["image"] for service in services().values()}
    assert [image for image in images if not re.fullmatch(r"[\w/-]+:\d+\.\d+(\.\d+)?(-\w+)?", image)] == []


def test_every_mounted_file_and_volume_exists() -> None:
    sources = {mount.split(":")[0] for service in services().values() for mount in service.get("volumes", [])}
    files = {source for source in sources if source.startswith(".")}
    assert [file for file in files if not (PROJECT / file).is_file()] == []
    assert sources - files == set(rendered()["volumes"])


# Connections


def test_concord_s_connections_are_all_there_and_valid_json() -> None:
    sites = {f"{site}{role}" for site in SITES for role in ("", "_reader", "_applier")}
    assert set(connections()) == sites | {"concord_repository", "spark_default"}


def test_the_configuration_loads_and_names_only_defined_connections() -> None:
    configuration = config.load(PROJECT / "compose" / "concord.yaml")
    named = {name for site in configuration.sites.values() for name in site.connections}
    assert named == set(connections()) - {"concord_repository", "spark_default"}
    assert all(site.insecure for site in configuration.sites.values())


def test_databases_say_their_dialect_in_extra() -> None:
    databases = {name: given for name, given in connections().items() if name != "spark_default"}
    assert {given["extra"]["dialect"] for given in databases.values()} == {"postgresql"}


def test_tasks_ask_the_connect_server_with_its_token_and_it_works_on_the_cluster() -> None:
    spark, server = connections()["spark_default"], services()["spark-connect"]
    assert (spark["conn_type"], spark["host"], spark["port"]) == ("spark_connect", "spark-connect", PORT)
    assert spark["password"] == server["environment"]["SPARK_CONNECT_AUTHENTICATE_TOKEN"]
    assert server["entrypoint"] == ["python", "-m", "spark_jobs.connect_server"]
    options = dict(zip(*[iter(server["command"])] * 2, strict=True))
    assert options["--master"] == "spark://spark-master:7077"
    assert networks(server) == {"spark"}, "it reaches no site: executors do"


@pytest.mark.parametrize("site", SITES)
def test_a_site_s_logins_have_the_passwords_that_its_connections_use(site: str) -> None:
    given = {name: connection for name, connection in connections().items() if name.startswith(site)}
    server = services()[f"site-{site}"]["environment"]
    assert {connection["host"] for connection in given.values()} == {f"site-{site}"}
    assert {connection["schema"] for connection in given.values()} == {server["POSTGRES_DB"]}
    assert {connection["login"]: connection["password"] for connection in given.values()} == {
        "concord_installer": server["INSTALLER_PASSWORD"],
        "concord_reader": server["READER_PASSWORD"],
        "concord_applier": server["APPLIER_PASSWORD"],
    }
    assert len({server[variable] for variable in server if variable.endswith("PASSWORD")}) == 4


def test_airflow_and_the_repository_have_a_database_and_a_login_each() -> None:
    server = services()["postgres"]["environment"]
    airflow = services()["airflow-scheduler"]["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    repository = connections()["concord_repository"]
    assert airflow == f"postgresql+psycopg://airflow:{server['AIRFLOW_DB_PASSWORD']}@postgres:5432/airflow"
    assert (repository["login"], repository["schema"], repository["host"]) == (
        "concord",
        "concord",
        "postgres",
    )
    assert repository["password"] == server["CONCORD_DB_PASSWORD"] != server["AIRFLOW_DB_PASSWORD"]


# Networks


def test_the_only_way_from_site_to_site_is_concord() -> None:
    on_site_networks = {name for name, service in services().items() if networks(service) & set(SITES)}
    assert on_site_networks == {"site-london", "site-capetown", "airflow-scheduler", "spark-worker"}
    assert networks(services()["site-london"]).isdisjoint(networks(services()["site-capetown"]))
    assert all(rendered()["networks"][site] == {"internal": True} for site in SITES)


def test_executors_find_the_driver_by_its_name_on_spark_s_network() -> None:
    defaults = (PROJECT / "compose" / "spark-defaults.conf").read_text()
    driver = re.search(r"^spark\.driver\.host\s+(\S+)$", defaults, re.MULTILINE)
    assert driver
    assert services()["spark-connect"]["networks"]["spark"]["aliases"] == [driver[1]]
    worker = services()["spark-worker"]
    assert worker["networks"]["spark"]["aliases"] == [
        worker["command"][worker["command"].index("--host") + 1]
    ]


def test_docker_compose_accepts_the_file(tmp_path: Path) -> None:
    command = compose_command()
    if command is None:
        pytest.skip("neither docker-compose nor docker compose is installed")
    secrets = tmp_path / "secrets"
    secrets.write_text("".join(f"{variable}=x\n" for variable in required_variables()))
    accepted = [*command, "--env-file", str(secrets), "config", "--quiet"]
    subprocess.run(accepted, cwd=PROJECT, check=True)
    secrets.write_text("")
    without = {name: value for name, value in os.environ.items() if name not in required_variables()}
    refused = subprocess.run(accepted, cwd=PROJECT, env=without, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "run compose/make_env.py" in refused.stderr
