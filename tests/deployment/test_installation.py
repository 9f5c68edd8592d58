"""`make install` as a person sees it: a few lines, no warning, and every error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT

UV = Path(sys.executable).with_name("uv")
BEGINS = "Installing Airflow, Spark, PostgreSQL and Java into .venv: 1.4 GB, some minutes at first …\n"
PINS = ("requirements.txt", "requirements-demo.txt")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The real Makefile and the real installer, with nothing to install."""
    (tmp_path / "Makefile").symlink_to(PROJECT / "Makefile")
    for pins in PINS:
        (tmp_path / pins).write_text("# nothing\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    (tmp_path / ".venv" / "bin" / "uv").symlink_to(UV)
    return tmp_path


def install(project: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "UV_OFFLINE": "1"}
    command = ["make", "--no-print-directory", "install"]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_an_installation_prints_a_few_lines_and_no_warning(project: Path) -> None:
    installed = install(project)
    assert (installed.returncode, installed.stdout, installed.stderr) == (0, BEGINS, "")
    assert (project / ".venv" / "installed").exists()


def test_what_is_installed_already_prints_nothing_of_it(project: Path) -> None:
    install(project)
    assert BEGINS not in install(project).stdout


@pytest.mark.parametrize("pins", PINS)
def test_a_package_that_cannot_be_had_is_named(project: Path, pins: str) -> None:
    (project / pins).write_text(f"no-such-thing==1.0 --hash=sha256:{'0' * 64}\n")
    refused = install(project)
    assert refused.returncode != 0
    assert "no-such-thing" in refused.stderr
    assert not (project / ".venv" / "installed").exists()
