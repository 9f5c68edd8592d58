"""Text that tries to be SQL, JSON, COPY, a template or a control sequence is only text, wherever it stands."""

import time
from itertools import product

import pytest

from tests.given.fixtures import MakePair

pytestmark = pytest.mark.spark

ENDINGS = ["'", '"', "')", "$$", "\\'", "'''", "`", "$q$", "*/"]
COMMANDS = [
    "; DROP TABLE hostile; --",
    "; DELETE FROM concord.site; --",
    " OR 1=1",
    "||pg_sleep(9)||",
    ", DEFAULT)",
]
FRAGMENTS = [
    *(
        "%s",
        "%(key)s",
        "%",
        "%%",
        ":name",
        "$1",
        "?",
        "{0}",
        "{{ 7*7 }}",
        "${jndi:ldap://x}",
        "#{x}",
        "<script>",
    ),
    *(
        "E'\\x41'",
        "U&'\\0041'",
        "\\copy",
        "\\.",
        "\\N",
        "\\",
        "\\\\",
        "--",
        "/*",
        "*/",
        "a,b",
        "a|b",
        "a\tb",
        "a\nb",
    ),
    *(
        "NULL",
        "null",
        "",
        " ",
        "true",
        "{}",
        "{NULL}",
        "[]",
        '{"a": 1}',
        "london#1",
        "[0, 0]",
        "/",
        "1/2/3",
        "0:",
    ),
]
CONTROLS = [1, 7, 8, 9, 10, 13, 27, 0x7F, 0x85, 0xA0, 0x200B, 0x2028, 0x202E, 0xFEFF, 0xFFFF, 0x10FFFF]
HOSTILE = sorted(
    {
        *(ending + command for ending, command in product(ENDINGS, COMMANDS)),
        *FRAGMENTS,
        *(quote + fragment + quote for quote, fragment in product("'\"$", FRAGMENTS)),
        *map(chr, CONTROLS),
        *(f"a{chr(code)}b" for code in CONTROLS),
    }
)

TABLE, KEY, VALUE = '"hostile""; DROP TABLE x; --"', '"the "" \'key"', '"$$; --"'


def test_hostile_strings_are_only_strings_as_keys_as_values_and_in_the_conflict_log(pair: MakePair) -> None:
    sites = pair(f"CREATE TABLE {TABLE} ({KEY} text PRIMARY KEY, {VALUE} text)")
    assert len(HOSTILE) >= 200
    with sites.london.connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {TABLE} VALUES (%s, %s)", [(text, text) for text in HOSTILE])
    sites.settle()
    assert sorted(sites.capetown.rows(f"SELECT * FROM {TABLE}")) == [(text, text) for text in HOSTILE]

    sites.london.run(f"UPDATE {TABLE} SET {VALUE} = {VALUE} || $q$'london$q$")
    time.sleep(0.01)
    sites.capetown.run(f"UPDATE {TABLE} SET {VALUE} = {VALUE} || $q$'capetown$q$")
    sites.settle()

    assert sites.equal
    logged = sites.conflicts()
    assert sorted(conflict["key"] for conflict in logged) == [[text] for text in HOSTILE]
    assert all(conflict["loser_row"]["$$; --"] == conflict["key"][0] + "'london" for conflict in logged)
