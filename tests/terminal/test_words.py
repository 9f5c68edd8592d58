"""Refusals speak the terminal's options, wherever they were worded."""

import pytest

from concord.messages.errors import ParametersRefused
from concord.orchestration.tasks import parameters
from concord.orchestration.tasks.compare import CompareParameters
from concord.orchestration.tasks.run_plan import SynchronizeParameters
from concord.terminal.words import in_a_cell, spoken

SAID = [
    (
        ". Nothing was written. Choose: how: load copies into an empty table; how: merge keeps the rows of both, where"
        " they differ those of the site that `from` names, and logs the others",
        ". Nothing was written. Choose: --how load copies into an empty table; --how merge keeps the rows of both,"
        " where they differ those of the site that --from names, and logs the others",
    ),
    ("equal at both sites (how: equal); make it so", "equal at both sites (--how equal); make it so"),
    (
        "say which of them holds what is right (from: <site>);",
        "say which of them holds what is right (--from <site>);",
    ),
    ("from: 'oslo' is no site of a_b", "--from 'oslo' is no site of a_b"),
    ("how: 'lod' is none of auto, equal", "--how 'lod' is none of auto, equal"),
    ("use how: reinitialize", "use --how reinitialize"),
    ("leave out these tables (tables: [...])", "leave out these tables (--table)"),
    (
        "these tables alone (tables: [public.a, public.b])",
        "these tables alone (--table public.a --table public.b)",
    ),
    ("not provisioned; run `provision` first", "not provisioned; run `python -m concord provision` first"),
    (
        "no history is proven; run initialize__a_b",
        "no history is proven; run `python -m concord initialize a_b`",
    ),
    (
        "run the replication's initialize__bank with `replace` and `tables: [public.a, public.b]`",
        "run `python -m concord replicate bank --initialize --replace --table public.a --table public.b`",
    ),
    (
        "its rows; run initialize__… of one of its synchronizations",
        "its rows; run `python -m concord initialize` of one of its synchronizations",
    ),
    (
        "If this is meant: python -m concord approve a_b, or trigger synchronize__a_b with approve: true",
        "If this is meant: python -m concord approve a_b",
    ),
    ("held by synchronize__a_b/manual__1 of Airflow", "held by synchronize__a_b/manual__1 of Airflow"),
    (
        "both would make the DAG initialize__a_b; rename one",
        "both would make the DAG initialize__a_b; rename one",
    ),
    ("(in Airflow: initialize__a_b, accept_restored)", "(in Airflow: initialize__a_b, accept_restored)"),
    ("the dataset: how: many", "the dataset: how: many"),
    ("what came from: nowhere", "what came from: nowhere"),
]


@pytest.mark.parametrize(("worded", "said"), SAID)
def test_parameters_and_dags_become_options_and_commands(worded: str, said: str) -> None:
    assert spoken(worded) == said


@pytest.mark.parametrize(
    ("kind", "given", "option"),
    [(CompareParameters, {"repair": "no"}, "--repair"), (SynchronizeParameters, {"tables": []}, "--table")],
)
def test_a_parameter_of_the_wrong_kind_is_named_as_an_option(
    kind: type[parameters.Parameters], given: dict[str, object], option: str
) -> None:
    with pytest.raises(ParametersRefused) as refused:
        parameters.read(kind, given)
    assert spoken(refused.value.message).startswith(f"{option}: ")


def test_a_message_of_several_lines_is_one_in_a_cell() -> None:
    assert in_a_cell("GRANT a\nRun `provision`") == "GRANT a Run `python -m concord provision`"
