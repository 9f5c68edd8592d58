"""Which Concord a process has imported: executors that stay may have another one than the driver they work for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypeVar

from concord.messages.errors import OtherCode
from concord.transmission.errors import OTHER_CODE

T = TypeVar("T")

#: The packages that tasks import, and what of them stays with Airflow.
PACKAGES = ("concord", "spark_jobs")
_AIRFLOW_ONLY = ("orchestration", "repository", "terminal", "__main__.py")


def sources() -> Iterator[tuple[str, bytes]]:
    """Every module that tasks may import: its path from the packages' folder, and its text."""
    for package in PACKAGES:
        yield from _below(files(package), package)


def _below(place: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for each in sorted(place.iterdir(), key=lambda each: each.name):
        if each.name in _AIRFLOW_ONLY:
            continue
        if each.is_dir():
            yield from _below(each, f"{path}/{each.name}")
        elif each.name.endswith(".py"):
            yield f"{path}/{each.name}", each.read_bytes()


def _digest() -> str:
    digest = sha256()
    for path, text in sources():
        digest.update(f"{path} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:16]


#: As this process has imported it; later changes of the files are not in it.
CODE = _digest()


def require(code: str) -> None:
    """Raises OtherCode where this process has imported another Concord than that one."""
    if code != CODE:
        raise OtherCode(OTHER_CODE)


def require_unchanged() -> None:
    """Raises OtherCode where the files are others than those that this process began with: it would mix the two."""
    if _digest() != CODE:
        raise OtherCode("Concord was upgraded, and this process began before: restart Airflow's processes")


def in_this_code(function: Callable[[Iterator[T]], Iterator[T]]) -> Callable[[Iterator[T]], Iterator[T]]:
    """The function for tasks: it begins only where they have the code that it was written for."""
    code = CODE

    def run(batches: Iterator[T]) -> Iterator[T]:
        require(code)
        yield from function(batches)

    return run
