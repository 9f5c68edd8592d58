"""The table lists of a configuration without some of their tables, as YAML to paste in place of the written ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import yaml

from concord.configuration.configuration import Configuration

#: A text that no reader of YAML takes for anything else; any other is quoted.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_CONSTANTS = re.compile(r"(?i:y|n|yes|no|on|off|null|true|false)")

#: Replication set → the entries of its `tables`, as written.
Lists = Mapping[str, list[Any]]


def fewer_tables(
    written: object, configuration: Configuration, refused: Collection[str]
) -> dict[str, list[Any]]:
    """Of each replication set that has a refused table, the others as they are `written` in the file."""
    sets = written["replication_sets"] if isinstance(written, Mapping) else {}
    found = {}
    for name, settings in configuration.replication_sets.items():
        entries = zip(settings.tables, sets[name]["tables"], strict=True)
        kept = [_plain(entry) for table, entry in entries if str(table.table) not in refused]
        if len(kept) < len(settings.tables):
            found[name] = kept
    return found


def _plain(value: object) -> object:
    """Lists where the file was read as tuples, which YAML does not have."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def as_yaml(lists: Lists) -> str:
    """The part of the file that the lists are in; it is read back as the same values."""
    part = {"replication_sets": {name: {"tables": tables} for name, tables in lists.items()}}
    return yaml.dump(part, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31)


class _Dumper(yaml.SafeDumper):
    """Quotes every text that could be read as another value."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Items of a list are indented, as in the documentation."""
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and not _CONSTANTS.fullmatch(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)
