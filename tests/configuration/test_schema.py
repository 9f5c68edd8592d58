"""The JSON schema for editors is the one in the tree, and says what the reader says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from concord.configuration.configuration import json_schema
from tests.configuration.examples import VALID, spoiled

CONFIG = Path(__file__).parents[2] / "config"


def mistakes(text: str) -> list[Any]:
    return list(Draft202012Validator(json_schema()).iter_errors(yaml.safe_load(text)))


def test_the_written_schema_is_the_generated_one() -> None:
    written = (CONFIG / "concord.schema.json").read_text()
    assert written == json.dumps(json_schema(), indent=2) + "\n", (
        "make config-schema > config/concord.schema.json"
    )


def test_the_schema_is_a_schema() -> None:
    of_schemas = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    assert list(of_schemas.iter_errors(json_schema())) == []
    assert list(of_schemas.iter_errors({"type": "table"})), "it would say so"


@pytest.mark.parametrize("text", [VALID, (CONFIG / "concord.yaml").read_text()], ids=["test", "demo"])
def test_what_the_reader_accepts_the_schema_accepts(text: str) -> None:
    assert mistakes(text) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    tables:", "    tabels:"),
        ("  london_capetown:", "  London-Capetown:"),
        ("  london_capetown:", "  ../x:"),
        ("readers: 2", "readers: 33"),
        ("readers: 2", "readers: two"),
        ("readers: 2", "password: hunter2"),
        ("connection: capetown", "connection: postgresql://u:p@h/d"),
        ("[latest_timestamp]", "[]"),
        ("[latest_timestamp]", "[os.system]"),
        ("14 days", "14"),
        ("key: [carrier]", "key: []"),
        ("key: [carrier]", "where: [x = 1]"),
        ("    source: london\n", ""),
    ],
)
def test_what_an_editor_can_see_the_schema_refuses(old: str, new: str) -> None:
    assert mistakes(spoiled(old, new))


def test_the_example_tells_editors_where_the_schema_is() -> None:
    first_line = (CONFIG / "concord.yaml").read_text().splitlines()[0]
    assert first_line == "# yaml-language-server: $schema=concord.schema.json"


def test_every_key_is_described() -> None:
    undescribed = [
        f"{name}.{key}"
        for name, settings in json_schema()["$defs"].items()
        for key, value in settings.get("properties", {}).items()  # a list of words has none
        if "description" not in value and "$ref" not in value
    ]
    assert undescribed == []
