"""No problem ever repeats a password, wherever in the file it was written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem
from tests.configuration.examples import VALID, spoiled

Problems = Callable[[str | bytes], tuple[Problem, ...]]

CANARY = "hunter2-canary"
WORDS = [
    "password",
    "PASSWORD",
    "passwd",
    "pwd",
    "secret",
    "url",
    "uri",
    "dsn",
    "jdbc_url",
    "api_key",
    "token",
]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("value", [CANARY, f"[{CANARY}]", f"'{CANARY}'", f"{{london: {CANARY}}}"])
@pytest.mark.parametrize("place", ["    readers: 2", "    source: london", "sites:"])
def test_a_key_that_would_hold_a_secret_is_refused_anywhere(
    problems: Problems, word: str, value: str, place: str
) -> None:  # 35
    indentation = place[: len(place) - len(place.lstrip())]
    found = problems(spoiled(place, f"{indentation}{word}: {value}\n{place}"))
    assert word in {problem.key.rsplit(".", 1)[-1] for problem in found}
    assert "Airflow connection" in "".join(map(str, found))
    assert CANARY not in "".join(map(str, found))


SECRET_VALUES = [
    f"postgresql://concord:{CANARY}@db.example/flights",
    f"jdbc:postgresql://db.example/flights?password={CANARY}",
    f"host=db.example user=concord password={CANARY}",
    f"concord:{CANARY}@db.example",
    f"PASSWORD = {CANARY}",
]


@pytest.mark.parametrize("value", SECRET_VALUES)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("connection: capetown", "connection: {}"),
        ("    readers: 2", "    readers: {}"),
        ("    source: london", "    source: {}"),
        ("14 days", "{}"),
        ('"*/5 * * * *"', "{}"),
        ("[latest_timestamp]", "[{}]"),
        ("public.airlines", "{}"),
        ("[carrier]", "[{}]"),
        ("ops.flights", "{}"),
    ],
)
def test_a_value_that_holds_an_address_or_a_password_is_refused_and_not_repeated(
    problems: Problems, value: str, old: str, new: str
) -> None:  # 35, 36
    (problem,) = problems(spoiled(old, new.format(f'"{value}"')))
    assert "looks like an address or a password" in problem.message
    assert CANARY not in str(problem)


@pytest.mark.parametrize("value", SECRET_VALUES)
def test_a_key_that_holds_a_password_is_hidden_too(problems: Problems, value: str) -> None:
    text = spoiled("  london: {connection", f'  "{value}": {{connection').replace(
        "source: london", "source: x"
    )
    found = problems(text)
    (hidden,) = [problem for problem in found if problem.key == "sites.(hidden)"]
    assert "this key looks like an address or a password" in hidden.message
    assert CANARY not in "".join(map(str, found))


@pytest.mark.parametrize(
    "broken",
    [
        f"password: '{CANARY}",
        f'password: "{CANARY}',
        f'password: "{CANARY}\\q"',
        f"password: {CANARY}\n    password: {CANARY}",
        f"password: &{CANARY} x",
        f"password: *{CANARY}",
        f"password: !{CANARY} x",
        f"password: !{CANARY}!x y",
        f"password: !!python/object/apply:os.system [{CANARY}]",
        f"password: %{CANARY}",
        f"password: @{CANARY}",
        f"password: {CANARY}: x",
        f"password: [{CANARY}",
        f"password: {{{CANARY}",
        f"password: |{CANARY}",
        f"password: >\n      {CANARY}\n      again",
        f"password:\n\t{CANARY}",
        f"password: &{CANARY} x\n    again: &{CANARY} x",
        f"%TAG !{CANARY}! x",
        f"password: {CANARY}\x07",
        f"? [{CANARY}]\n    : x",
        f"- {CANARY}",
        CANARY,
    ],
)
def test_broken_yaml_around_a_password_does_not_spill_it(problems: Problems, broken: str) -> None:
    found = problems(spoiled("    readers: 2", f"    {broken}"))
    assert "hunter2" not in "".join(map(str, found))


def test_a_site_may_be_called_like_a_secret(problems: Problems) -> None:
    """A site called `token` is a name, and the mapping below it no secret."""
    text = VALID.replace("  london: {connection: london}", "  token: {connection: london}")
    assert {problem.key for problem in problems(text)} == {"synchronizations.london_capetown.source"}


def filtered(where: str) -> str:
    """The valid configuration with this filter on a table, and on what a site owns of it."""
    quoted = '"' + where.replace('"', '\\"') + '"'
    return spoiled(
        "public.airlines", f"public.airlines\n        where: {quoted}\n        owners: {{london: {quoted}}}"
    )


@pytest.mark.parametrize(
    "where", ["token = 'x'", "NOT (api_token='x' OR secret IN ('y', 'z'))", "pwd = 'a' AND password IS NULL"]
)
def test_a_row_filter_may_compare_a_column_that_is_called_like_a_secret(
    parse: Callable[[str | bytes], Configuration], where: str
) -> None:
    (table,) = [each for each in parse(filtered(where)).tables("london_capetown") if each.where]
    assert table.where is not None
    assert table.where.columns


@pytest.mark.parametrize(
    "where",
    [
        *SECRET_VALUES,
        f"link = 'postgresql://concord:{CANARY}@db.example/flights'",
        f"note IN ('x', 'password={CANARY}')",
        f"a > 1 OR note BETWEEN 'a' AND 'concord:{CANARY}@db.example'",
    ],
)
def test_an_address_or_a_password_is_refused_in_a_row_filter_as_anywhere(
    problems: Problems, where: str
) -> None:
    found = problems(filtered(where))
    assert {problem.key.rsplit(".", 1)[-1] for problem in found} == {"where", "london"}
    assert all("looks like an address or a password" in problem.message for problem in found)
    assert CANARY not in "".join(map(str, found))
