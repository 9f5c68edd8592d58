"""The command reference, made of the parser itself: `python -m tests.docs.commands` writes docs/commands.md."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from concord import __main__ as entrance
from concord.terminal import command_line

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
_INTRODUCTION = """\
# Commands

`python -m tests.docs.commands` writes this page from the command line's own parser; a test holds it true.
Each command explains itself: `python -m concord COMMAND --help`.
[Own databases](own-databases.md) says how a shell comes to know it.
"""


def page() -> str:
    """The whole document."""
    parser = command_line.parser()
    everywhere = list(_given(parser))
    parts = [_INTRODUCTION, "\n## Exit status\n\n", *_statuses(), "\n## Options of every command\n\n"]
    parts += _table(everywhere)
    for name, about, each in _commands(parser):
        parts.append(f"\n## {name}\n\n{_sentence(about)}\n")
        if rows := [row for row in _given(each) if row not in everywhere]:
            parts += ["\n", *_table(rows)]
    return "".join(parts)


def _statuses() -> Iterator[str]:
    """The module's words about it."""
    yield "| status | when |\n|---|---|\n"
    text = " ".join((entrance.__doc__ or "").split("\n\n")[1].split())
    for sentence in text.replace("; one line", ", one line").split(". "):
        number, colon, when = sentence.rstrip(".").partition(": ")
        if colon and number.isdigit():
            yield f"| {number} | {when} |\n"


def _commands(
    parser: argparse.ArgumentParser, before: str = ""
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Every command and every action of one, with what it is for."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            about = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, each in action.choices.items():
                yield f"{before}{name}", about[name], each
                yield from _commands(each, f"{before}{name} ")


def _given(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Each argument and option, and what it means."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            yield _written(action), _meaning(parser, action)


def _written(action: argparse.Action) -> str:
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else None
    value = action.metavar or choices or (action.dest.upper() if action.option_strings else action.dest)
    if not action.option_strings:
        return f"`{' '.join([str(value)] * (action.nargs if isinstance(action.nargs, int) else 1))}`"
    return ", ".join(
        f"`{name}`" if action.nargs == 0 else f"`{name} {value}`" for name in action.option_strings
    )


def _meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    meaning = action.help or ""
    if action.option_strings and isinstance(action.default, str) and action.default != argparse.SUPPRESS:
        meaning += f"; default {action.default}" if meaning else f"default {action.default}"
    for group in parser._mutually_exclusive_groups:
        if action in group._group_actions:
            others = [each for each in group._group_actions if each is not action]
            meaning += f"; not with {', '.join(map(_written, others))}"
    return meaning.replace("|", "\\|")


def _table(rows: list[tuple[str, str]]) -> list[str]:
    cells = [(written.replace("|", "\\|"), meaning) for written, meaning in rows]
    return [
        "| given | meaning |\n|---|---|\n",
        *(f"| {written} | {meaning} |\n" for written, meaning in cells),
    ]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


if __name__ == "__main__":
    PAGE.write_text(page())
