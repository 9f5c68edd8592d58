"""The command reference is what the parser says."""

import argparse

from concord.terminal import command_line
from tests.docs.commands import PAGE, _commands, _given, page


def test_the_command_reference_says_what_the_parser_knows() -> None:
    assert PAGE.read_text() == page(), "python -m tests.docs.commands writes it anew"


def test_every_command_and_option_stands_in_the_reference() -> None:
    def words(parser: argparse.ArgumentParser) -> set[str]:
        found = set(parser._option_string_actions) - {"-h", "--help"}
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, each in action.choices.items():
                    found |= {f"## {name}"} if parser.prog == "python -m concord" else {f" {name}\n"}
                    found |= words(each)
        return found

    text = PAGE.read_text()
    assert {word for word in words(command_line.parser()) if word not in text} == set()


def test_every_argument_says_what_it_means() -> None:
    parser = command_line.parser()
    silent = [
        f"{name} {written}"
        for name, _, each in [("", "", parser), *_commands(parser)]
        for written, meaning in _given(each)
        if not meaning or meaning.startswith(("default ", "; "))
    ]
    assert silent == []
