"""Columns and mappings of a table entry: every mistake has its one line, with what to do (S0-06, S0-23, S1-34)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem
from concord.tables.manipulation import Cut, Split
from tests.configuration.examples import spoiled

Problems = Callable[[str | bytes], tuple[Problem, ...]]

LISTED = "key: [carrier]\n        columns: [carrier, name, iban, status]"


def mapped(operations: str, listed: str = LISTED) -> str:
    """The valid configuration with a mapping for the table airlines at Cape Town."""
    return spoiled("key: [carrier]", f"{listed}\n        mappings: {{capetown: {{{operations}}}}}")


def test_a_mapping_is_declared_once_and_its_reverse_is_derived(
    parse: Callable[[str], Configuration],
) -> None:
    text = mapped("split: {iban: {into: [bank, number], lengths: [4, 6]}}, constant: {region: 7}")
    _, table = parse(text).tables("london_capetown")
    split, constant = table.manipulation_at("capetown").operations
    assert split == Split(canonical=("iban",), own=("bank", "number"), cut=Cut(parts=2, lengths=(4, 6)))
    assert split.to_canonical(split.to_own(("BANK123456",))) == ("BANK123456",)
    assert constant.to_own(()) == ("7",)
    assert table.columns_at("capetown") == ("carrier", "name", "bank", "number", "status", "region")
    assert table.columns_at("london") == ("carrier", "name", "iban", "status")
    assert not table.manipulation_at("london")


WRONG = [
    # the operations, the key below mappings.capetown, the message
    (
        "cast: {status: {canonical: bigint, here: integer}}", "cast.status",
        "integer does not hold every value of bigint: some would be lost; choose a type that holds them all",
    ),
    (
        "cast: {status: {canonical: text, here: varchar(5)}}", "cast.status",
        "character varying(5) does not hold every value of text: some would be lost; choose a type that holds them all",
    ),
    (
        "cast: {status: {canonical: int, here: int4}}", "cast.status",
        "casts integer to itself; leave it out, or use rename for another name",
    ),
    (
        "cast: {status: {canonical: intger, here: text}}", "cast.status.canonical",
        "not a type that can be cast exactly; did you mean 'integer'?",
    ),
    (
        "values: {status: {map: {A: active, B: active}}}", "values.status.map",
        "not one to one: 'A' and 'B' both become 'active', and nobody could tell them apart on the way back;"
        " give each its own word",
    ),
    (
        "split: {iban: {into: [bank, number]}}", "split.iban",
        "cannot be reversed: give either lengths or separator, to tell the parts apart",
    ),
    (
        "split: {iban: {into: [bank, number], lengths: [4]}}", "split.iban",
        "2 parts but 1 lengths; give each part its length",
    ),
    (
        "combine: {both: {columns: [name, iban], separator: ''}}", "combine.both",
        "cannot be reversed: the separator is empty; write the text that stands between the parts",
    ),
    (
        "split: {iban: {into: [bank], separator: '-'}}", "split.iban",
        "one part is no split; name two columns or more, or use rename",
    ),
    (
        "rename: {iban: konto}, split: {iban: {into: [bank, number], separator: '-'}}", "split.iban",
        "column 'iban' is mapped twice, here and by rename of iban; keep one",
    ),
    (
        "rename: {iban: konto, name: konto}", "rename.name",
        "column 'konto' is made twice, here and by rename of iban; rename one",
    ),
    (
        "rename: {iban: status}", "rename.iban",
        "makes a column 'status', which columns lists as another one; rename it",
    ),
    ("rename: {ibna: konto}", "rename.ibna", "columns does not list 'ibna'; did you mean 'iban'?"),
    ("rename: {iban: iban}", "rename.iban", "renames a column to itself; leave it out"),
    ("renam: {iban: konto}", "renam", "unknown key; did you mean 'rename'?"),
    ("split: {iban: {into: [a, b], seperator: '-'}}", "split.iban.seperator", "unknown key; did you mean 'separator'?"),
    (
        "combine: {both: {columns: [carrier, name], separator: '-'}}", "combine.both",
        "combines key column 'carrier' with others; keep the columns of the key to themselves",
    ),
    ("", "", "empty; name an operation, such as rename, or leave the site out"),
]  # fmt: skip


@pytest.mark.parametrize(("operations", "key", "line"), WRONG)
def test_a_mapping_that_cannot_be_reversed_is_refused(
    problems: Problems, operations: str, key: str, line: str
) -> None:
    (problem,) = problems(mapped(operations))
    assert str(problem).partition(": ")[2] == (
        "replication_sets.flight_operations.tables[1].mappings.capetown"
        + (f".{key}" if key else "")
        + f": {line}"
    )


def test_an_unknown_site_and_a_key_that_is_not_listed(problems: Problems) -> None:
    text = spoiled(
        "key: [carrier]",
        "key: [carier]\n        columns: [carrier]\n        mappings: {capetwn: {rename: {carrier: x}}}",
    )
    assert [problem.message + "; " + problem.hint for problem in problems(text)] == [
        "names 'carier', which columns does not list; did you mean 'carrier'?",
        "unknown site 'capetwn'; did you mean 'capetown'?",
    ]
