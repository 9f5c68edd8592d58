"""The reader's value for a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from concord.configuration.configuration import Configuration, load
from concord.messages.errors import ConfigurationInvalid, Problem


@pytest.fixture
def parse(tmp_path: Path) -> Callable[[str | bytes], Configuration]:
    """Loads a text as concord.yaml."""

    def load_text(text: str | bytes) -> Configuration:
        file = tmp_path / "concord.yaml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return load(file)

    return load_text


@pytest.fixture
def problems(parse: Callable[[str | bytes], Configuration]) -> Callable[[str | bytes], tuple[Problem, ...]]:
    """The problems of a text; fails where it has none."""

    def problems_of(text: str | bytes) -> tuple[Problem, ...]:
        with pytest.raises(ConfigurationInvalid) as refused:
            parse(text)
        assert str(refused.value) == "\n".join(map(str, refused.value.problems))
        return refused.value.problems

    return problems_of
