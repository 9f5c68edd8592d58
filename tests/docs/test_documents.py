"""Every command of the documents is there to be typed; those that can be run safely are run."""

import re
import shlex
import subprocess
import sys
import tomllib
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from concord.__main__ import main
from concord.configuration.configuration import load
from concord.jobs.link import Direction
from concord.messages.errors import ConcordError, ConfigurationInvalid
from demo.invitation import lines
from demo.workspace import DEFAULT

PROJECT = Path(__file__).parents[2]
DOCUMENTS = sorted([PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")])
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands() -> list[str]:
    """Every command line of every console block."""
    blocks = [block for document in DOCUMENTS for block in CONSOLE.findall(document.read_text())]
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return sorted({line.removeprefix("$ ") for line in lines if line.startswith("$ ")})


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": "plugins", "PATH": "/usr/bin:/bin", "CONCORD_CONFIG": "config/concord.yaml"}
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)


def test_the_two_commands_stand_in_the_readme() -> None:
    assert {"make demo", "make test"} <= set(commands())


@pytest.mark.parametrize("command", [line for line in commands() if line.startswith("make")])
def test_every_make_target_of_the_documents_exists(command: str) -> None:
    listed = run("make", "help").stdout
    assert f"make {shlex.split(command)[1]} " in listed


@pytest.mark.parametrize("command", [line for line in commands() if " -m concord " in line])
def test_every_concord_command_of_the_documents_is_understood(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before_options = takewhile(lambda word: not word.startswith("-"), shlex.split(command)[3:])
    with pytest.raises(SystemExit) as ended:
        main([*before_options, "--help"])
    shown = capsys.readouterr()
    assert ended.value.code == 0, shown.err
    for option in (word for word in shlex.split(command) if word.startswith("--")):
        assert option in shown.out


def test_the_quick_start_says_what_make_airflow_prints() -> None:
    assert set(lines(DEFAULT / "airflow")) <= set(commands())


def test_checking_the_example_configuration_succeeds() -> None:
    checked = run(sys.executable, "-m", "concord", "check-config")
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("document", ["README.md", "docs/configuration.md", "docs/topologies.md"])
def test_the_configurations_of_the_documents_are_valid(document: str, tmp_path: Path) -> None:
    for number, block in enumerate(
        re.findall(r"```yaml\n(.*?)```", (PROJECT / document).read_text(), re.DOTALL)
    ):
        path = tmp_path / f"{number}.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(block)))
        try:
            load(path)
        except ConfigurationInvalid as error:
            pytest.fail(str(error))


def test_every_link_between_documents_leads_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_picture_of_the_architecture_names_what_the_code_names() -> None:
    picture = (PROJECT / "docs" / "architecture.svg").read_text()
    named = set(re.findall(r'<text class="code"[^>]*>(.*?)</text>', picture))
    code = "\n".join(path.read_text() for path in (PROJECT / "plugins").rglob("*.py"))
    links = {f"{direction}_link" for direction in Direction}
    assert links <= named
    assert {"begin", "complete", "release", "concord.conflict", "concord.link_state"} <= named
    for name in named - links:
        assert re.search(rf"\b{re.escape(name.split('__')[0])}\b|\b{name.split('__')[0]}__", code), name


def anchor(heading: str) -> str:
    """The name by which a link leads to it."""
    shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.replace("`", "").replace("*", ""))
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_every_link_to_a_heading_leads_to_one() -> None:
    known = {document.resolve(): anchors(document) for document in DOCUMENTS}
    for document in DOCUMENTS:
        for file, name in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", document.read_text()):
            target = (document.parent / file).resolve() if file else document.resolve()
            assert name in known.get(target, {name}), f"{document.name}: {file}#{name}"


def codes(kind: type[ConcordError]) -> set[str]:
    return {kind.code}.union(*(codes(child) for child in kind.__subclasses__()))


def test_every_error_code_is_explained_in_operations() -> None:
    text = (PROJECT / "docs" / "operations.md").read_text()
    assert {code for code in codes(ConcordError) if f"`{code}`" not in text} == set()


def test_the_license_is_the_one_that_pyproject_and_the_readme_name() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    (file,) = (PROJECT / name for name in project["license-files"])
    told = file.read_text()
    assert project["license"] == "Apache-2.0"
    assert "Apache License" in told
    assert "Version 2.0, January 2004" in told
    assert "END OF TERMS AND CONDITIONS" in told
    assert f"]({file.name})" in (PROJECT / "README.md").read_text()


@pytest.mark.parametrize("name", ["own-databases", "troubleshooting", "uninstall", "commands", "security"])
def test_a_page_for_beginners_has_no_long_paragraph(name: str) -> None:
    """Rights and numbers stand in tables, and eighty words are enough for the rest."""
    text = re.sub(r"```.*?```", "", (PROJECT / "docs" / f"{name}.md").read_text(), flags=re.DOTALL)
    paragraphs = (part for part in text.split("\n\n") if not part.startswith("|"))
    assert [part for part in paragraphs if len(part.split()) > 80] == []
