"""A page's console blocks, typed into one shell: each command, and the lines that follow on it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

#: ```console … ```, with `$ ` before each command.
CONSOLE = re.compile(r"(```console\n)(.*?)(```)", re.DOTALL)
_END = "END-OF-OUTPUT"


class Shell:
    """One bash that stays, so that what a command sets holds for the next ones."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def type(self, command: str) -> tuple[int, str]:
        """Its status, and what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # A command's own input is not the shell's.
        self._process.stdin.write(f"{{ {command}\n}} </dev/null; printf '\\n{_END} %s\\n' $?\n")
        self._process.stdin.flush()
        lines: list[str] = []
        while not (line := self._process.stdout.readline()).startswith(_END):
            assert line, f"the shell ended: {''.join(lines)}"
            lines.append(line)
        return int(line.removeprefix(_END)), "".join(lines).removesuffix("\n")


def played(page: str, shell: Shell, typed: Callable[[str], str], shown: Callable[[str], str]) -> str:
    """The page with the output that its commands have now. `typed` and `shown` change what differs between runs.

    Fails at the first command with a status other than 0.
    """
    return CONSOLE.sub(lambda block: f"{block[1]}{_block(block[2], shell, typed, shown)}{block[3]}", page)


def _block(block: str, shell: Shell, typed: Callable[[str], str], shown: Callable[[str], str]) -> str:
    lines: list[str] = []
    for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        status, said = shell.type(typed(command))
        assert status == 0, f"{command}: {said}"
        lines += [f"$ {command}", *(line.rstrip() for line in shown(said).splitlines())]
    return "".join(f"{line}\n" for line in lines)
