"""The documents of `--json` have the shape that docs/operations.md gives them."""

import json

import pytest

from concord.__main__ import main
from tests.given.airflow_pair import NAME, Pair
from tests.given.typed_commands import Terminal
from tests.terminal.json_shapes import ENDS, SHAPES

#: The questions that two sites can be asked that have just been initialized, and the exit status.
COMMANDS = {
    "status": 0,
    "check-config": 0,
    "config-schema": 0,
    f"plan {NAME}": 0,
    f"initialize {NAME}": 0,
    f"compare {NAME}": 0,
    f"approve {NAME}": 1,
    "provision --check": 0,
    "provision --print-sql": 0,
    "provision --skip-refused": 0,
    "tombstones": 0,
    "conflicts list": 0,
    "conflicts what-if --policy update_wins": 0,
    "waiting list": 0,
}

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


def test_every_command_has_a_shape_in_the_document() -> None:
    actions = {
        *(
            "status",
            "synchronize",
            "plan",
            "initialize",
            "compare",
            "provision",
            "forget",
            "approve",
            "tombstones",
        ),
        *(f"conflicts {each}" for each in ("list", "show", "what-if", "overturn")),
        *(f"waiting {each}" for each in ("list", "decide", "retry", "drop")),
        *("snapshot refresh", "snapshot drop", "check-config", "config-schema"),
    }
    assert actions <= set(SHAPES)


def test_each_document_is_what_the_page_says(pair: Pair, terminal: Terminal) -> None:
    for words, status in COMMANDS.items():
        answer = terminal(*words.split(), "--json")
        assert answer.status == status, words
        told = json.loads(answer.out[answer.out.index("{\n") :])
        name = max((each for each in SHAPES if words.startswith(each)), key=len)
        assert told["command"] == " ".join(name.split(" --")[0].split()), words
        if name != "config-schema":
            assert list(told) == ["command", *SHAPES[name], *ENDS], words


def test_a_refusal_is_one_object_on_stderr_and_nothing_else(
    unprovisioned: Pair, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = terminal("plan", "no", "--json")
    assert (refused.status, refused.out) == (2, "")
    assert json.loads(refused.err) == {
        "error": {
            "code": "parameters_refused",
            "message": f"there is no synchronization 'no'; there are {NAME}",
            "transient": False,
        }
    }
    unprovisioned.path.write_text("sites: 7")
    assert main(["--json", "check-config"]) == 1
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "configuration_invalid"
