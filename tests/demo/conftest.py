"""A small demo's sites, made once: loaded, provisioned, proven equal, edited. No run has happened yet."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from concord.configuration.configuration import Configuration, load
from demo.environment import CONFIG
from demo.progress import Progress
from demo.scene import Scene, opened


@pytest.fixture(scope="session")
def configuration() -> Configuration:
    return load(CONFIG)


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory, configuration: Configuration) -> Iterator[Scene]:
    progress = Progress(Console(file=StringIO()))
    directory: Path = tmp_path_factory.mktemp("demo")
    with opened(progress, directory, configuration, 1_000, keep=False) as made:
        yield made
