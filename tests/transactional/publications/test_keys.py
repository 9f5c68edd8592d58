"""Keys of replicated tables: whatever `provision` admits, a replay finds its rows by."""

import re
from collections.abc import Callable

import pytest

from concord.messages.errors import ProvisioningRefused
from tests.given.own_equality import OWN_EQUALITY
from tests.given.releases import have_pgvector
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]

#: Three values of each type: one that stays, one that becomes the third.
FIT = {
    "int4": ("1", "2", "3"),
    "numeric": ("1.0", "2.00", "3"),
    "float8": ("-0", "Infinity", "1e300"),
    "text": ("a", "B", ""),
    'text COLLATE "C"': ("a", "B", ""),
    "bpchar": ("a ", "b", "c"),
    "bytea": (r"\x00", r"\x01", r"\x"),
    "uuid": tuple(f"00000000-0000-0000-0000-00000000000{n}" for n in range(3)),
    "timestamptz": ("2025-01-01", "2026-01-01", "epoch"),
    "interval": ("24 hours", "2 days", "1 mon"),
    "jsonb": ('{"a": 1}', "[]", "null"),
    "inet": ("10.0.0.1", "::1", "10.0.0.0/8"),
    "int4[]": ("{1}", "{}", "{1,NULL}"),
    "numrange": ("[1,2)", "empty", "(,)"),
    "mood": ("low", "high", "none"),
    "mood[]": ("{low}", "{}", "{high}"),
    "pair": ("(1,a)", "(2,b)", "(,)"),
    "years": ("1", "2", "3"),
    "ext.ltree[]": ("{a.b}", "{}", "{c}"),
}
VECTOR = ("public.vector",) if have_pgvector() else ()
UNFIT = ("ext.citext", "ext.ltree", "ext.hstore", "path_of", "mood_of", *VECTOR)
TYPES = (
    *OWN_EQUALITY,
    "GRANT USAGE ON SCHEMA ext TO PUBLIC",
    *(["CREATE EXTENSION vector"] if VECTOR else []),
    "CREATE TYPE mood AS ENUM ('low', 'high', 'none')",
    "CREATE TYPE pair AS (n int, t text)",
    "CREATE DOMAIN years AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN mood_of AS mood",
    "CREATE DOMAIN path_of AS ext.ltree",
)


def tables(kinds: tuple[str, ...]) -> list[str]:
    return [f"CREATE TABLE k{n} (id {kind} PRIMARY KEY, said text)" for n, kind in enumerate(kinds)]


@pytest.mark.parametrize("set_based_from", [1, 500], ids=["by set", "one by one"])
def test_rows_of_every_admitted_type_of_key_are_found(replicated: Make, set_based_from: int) -> None:
    names = [f"public.k{n}" for n in range(len(FIT))]
    sites = replicated((*TYPES, *tables(tuple(FIT))), *names, set_based_from=set_based_from)
    for table, (one, other, _) in zip(names, FIT.values(), strict=True):
        sites.london.run(f"INSERT INTO {table} VALUES ('{one}', 'stays'), ('{other}', 'goes')")
    sites.initialize()
    for table, (_, other, third) in zip(names, FIT.values(), strict=True):
        sites.london.run(
            f"BEGIN; UPDATE {table} SET said = 'was found' WHERE said = 'stays';"
            f" UPDATE {table} SET id = '{third}' WHERE said = 'goes'; COMMIT",
            f"BEGIN; DELETE FROM {table} WHERE said = 'goes'; INSERT INTO {table} VALUES ('{other}', 'new'); COMMIT",
        )
    report = sites.run()
    assert (report.entries, report.conversions) == (2 * len(FIT), 0)
    assert sites.are_equal()


def test_a_key_that_no_operator_of_postgresql_compares_is_refused_where_it_is_replayed(
    replicated: Make,
) -> None:
    """A run would end with `operator does not exist`, or compare texts and read the whole table."""
    names = [f"public.k{n}" for n in range(len(UNFIT))]
    with pytest.raises(ProvisioningRefused) as refused:
        replicated((*TYPES, *tables(UNFIT)), *names)
    found = re.findall(
        r"^  - (\w+): (public\.k\d+) has the key column id of type (\S+), ", str(refused.value), re.M
    )
    assert [(site, table) for site, table, _ in found] == [("capetown", name) for name in names]
    assert "which no operator of PostgreSQL's own compares; name another unique `key`" in str(refused.value)
