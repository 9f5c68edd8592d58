"""Whatever the file holds, it gives a Configuration or ConfigurationInvalid, never another exception."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from concord.configuration.configuration import Configuration, load
from concord.messages.errors import ConfigurationInvalid
from tests.configuration.examples import VALID

LINES = VALID.splitlines(keepends=True)
FRAGMENTS = [
    "no", "on", "1e3", "-1", "0", "2h", "0s", "null", "~", "[]", "{}", "[", "]", "{", "}", ":", ": ",
    "- ", "? ", "#", "&a ", "*a", "!!python/name:os.system ", "!x ", "%YAML 9.9\n", "---\n", "...\n",
    "\t", "\n", '"', "'", "|\n", ">", "\x00", "\x07", "\ufeff", "\u2028", "\U0001f600", "<<: ", "@", "`",
    '"\\ud800"', '"\\UFFFFFFFF"', "[key]", "password: x\n", "postgresql://u:p@h/d", "a.b.c", "public.*",
    "* * * * *", "0 0 30 2 *", "P1D", "x" * 300,
]  # fmt: skip


def outcome(content: bytes) -> Configuration | ConfigurationInvalid:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "concord.yaml")
        file.write_bytes(content)
        try:
            return load(file)
        except ConfigurationInvalid as refused:
            return refused


def check(content: bytes) -> None:
    """Either a configuration, or at least one problem, each on one printable line that stands in the file."""
    result = outcome(content)
    if isinstance(result, Configuration):
        return
    last = (
        content.count(b"\n")
        + content.count(b"\r")
        + content.count(b"\xe2\x80")
        + content.count(b"\xc2\x85")
        + 1
    )
    assert result.problems
    for problem in result.problems:
        assert 1 <= problem.line <= last
        assert str(problem).isprintable()
        assert problem.message


@st.composite
def edited(draw: st.DrawFn) -> str:
    """The valid text after a few slips: something inserted, cut, repeated or moved."""
    text = VALID
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        inserted = draw(st.one_of(st.just(""), st.sampled_from(FRAGMENTS), st.sampled_from(LINES)))
        text = text[:start] + inserted + text[end:]
    return text


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.sampled_from(FRAGMENTS)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree of plain values."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [place for key, item in entries for place in [(value, key), *places(item)]]


@st.composite
def transplanted(draw: st.DrawFn) -> str:
    """The valid tree with values of any kind in some places, and a strange key or two."""
    tree = yaml.safe_load(VALID)
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(places(tree)))
        container[key] = draw(VALUES)
        if isinstance(container, dict) and draw(st.booleans()):
            container[draw(st.text(max_size=8) | st.integers() | st.none())] = container.pop(key)
    return str(yaml.safe_dump(tree, allow_unicode=draw(st.booleans())))


@settings(max_examples=600)
@given(edited())
def test_a_slip_of_the_hand_is_a_problem_or_harmless(text: str) -> None:
    check(text.encode())


@settings(max_examples=400)
@given(transplanted())
@example(VALID.replace("table: public.flights", "'[key]': null", 1))
def test_a_value_of_any_kind_in_any_place_is_a_problem_or_harmless(text: str) -> None:
    check(text.encode())


@settings(max_examples=300)
@given(
    st.binary(max_size=200)
    | st.tuples(st.sampled_from(LINES), st.binary(max_size=8)).map(
        lambda pair: VALID.encode().replace(pair[0].encode(), pair[1], 1)
    )
)
def test_bytes_that_are_no_text_are_a_problem_or_harmless(content: bytes) -> None:
    check(content)


def test_the_fuzz_would_notice_a_text_that_is_valid() -> None:
    assert isinstance(outcome(VALID.encode()), Configuration)
