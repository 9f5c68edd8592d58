"""The row before its local edits is kept where a resolver needs it, exactly, once, and nowhere else."""

import random
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from concord.databases.postgresql.sites.ends import Source
from concord.databases.postgresql.write import merged_row
from concord.messages.errors import StructureChanged
from concord.rules.merging import BY_HOOK, hooked_version, merged_version
from concord.versions.row_version import RowVersion, vector_to_json
from tests.given.fixtures import MakePair
from tests.given.merging_pair import STOCK, merging
from tests.given.site import Site
from tests.given.two_sites import Pair
from tests.versions.any_version import random_version

IMAGE = {
    "id": "1",
    "seats": "100",
    "price": "10.00",
    "title": "old",
    "seen": "2026-01-02 03:04:05.678901+00",
    "data": "\\x00ff",
}
UNSEEN = {"origin": "", "changed_at": 0, "derived": 0, "vector": {}}


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return merging(pair(*STOCK), "merge_columns")


def kept(site: Site, key: int = 1) -> tuple[object, ...]:
    """The before-image, and the version under which the row stood."""
    (found,) = site.rows(f'SELECT base_row, base_version FROM concord."public.stock" WHERE id = {key}')
    return tuple(found)


def dot(site: Site) -> tuple[object, ...]:
    (found,) = site.rows(
        'SELECT origin, changed_at, derived, vector FROM concord."public.stock" WHERE id = 1'
    )
    return tuple(found)


def as_read(sites: Pair) -> None:
    """As if a link had read London just now."""
    source = Source(sites.job())
    with source.cut() as cut:
        source.beat(cut.position)
    source.close()


def columns(site: Site, table: str) -> set[str]:
    query = f"SELECT attname FROM pg_attribute WHERE attrelid = 'concord.\"public.{table}\"'::regclass AND attnum > 0"
    return {name for (name,) in site.rows(query)}


def test_the_first_edit_keeps_the_whole_row_whatever_the_users_settings(sites: Pair) -> None:
    """F20: a user's session may show times, bytes and numbers in any way."""
    sites.london.run(
        "SET TimeZone = 'Africa/Johannesburg'",
        "SET DateStyle = 'German'",
        "SET bytea_output = 'escape'",
        "UPDATE stock SET seats = 1, title = NULL, data = NULL WHERE id = 1",
    )
    assert kept(sites.london) == (IMAGE, UNSEEN)


def test_the_edits_that_follow_keep_it_until_a_link_has_read_the_row(sites: Pair) -> None:
    sites.london.run("UPDATE stock SET seats = 1 WHERE id = 1", "UPDATE stock SET seats = 2 WHERE id = 1")
    assert kept(sites.london) == (IMAGE, UNSEEN)
    read = dot(sites.london)
    as_read(sites)
    assert kept(sites.london) == (IMAGE, UNSEEN)
    sites.london.run("UPDATE stock SET seats = 3 WHERE id = 1", "UPDATE stock SET seats = 4 WHERE id = 1")
    version = dict(zip(("origin", "changed_at", "derived", "vector"), read, strict=True))
    assert kept(sites.london) == (IMAGE | {"seats": "2"}, version)


def test_inserts_and_deletes_keep_none(sites: Pair) -> None:
    sites.london.run("INSERT INTO stock VALUES (100, 1)", "UPDATE stock SET seats = 2 WHERE id = 1")
    sites.london.run("DELETE FROM stock WHERE id = 1")
    assert kept(sites.london, 100) == kept(sites.london) == (None, None)
    sites.london.run("INSERT INTO stock VALUES (1, 5)")
    assert kept(sites.london) == (None, None)


def test_other_tables_keep_nothing_and_a_table_that_needs_none_any_more_drops_it(sites: Pair) -> None:
    both = {"base_row", "base_version"}
    assert both <= columns(sites.london, "stock")
    assert not both & columns(sites.london, "plain")
    merging(sites, "latest_timestamp")
    assert not both & columns(sites.london, "stock")
    sites.london.run("UPDATE stock SET seats = 1 WHERE id = 1")
    assert dot(sites.london)[0] == "london#1"
    merging(sites, "merge_columns")
    assert kept(sites.london) == (None, None)


def test_a_site_that_keeps_none_yet_is_refused_until_it_is_provisioned(pair: MakePair) -> None:
    sites = pair(*STOCK)
    merged = merging(sites, "additive(seats)")
    merging(sites, "latest_timestamp")
    source = Source(merged.job())
    with pytest.raises(StructureChanged, match=r"london: public\.stock does not keep yet .* run `provision`"):
        source.inspect(merged.tables)
    source.close()


REFUSED = {
    "additive(seats, title)": "has a column title of type text instead of a whole or decimal number",
    "average(id)": "has id in its key",
    "average(bookings)": "has no replicated column bookings",
}


def test_a_column_that_cannot_be_calculated_with_is_refused_by_name(sites: Pair) -> None:
    for resolver, said in REFUSED.items():
        with pytest.raises(AssertionError) as refused:
            merging(sites, resolver)
        assert f"london: public.stock {said}, which {resolver} names" in str(refused.value)


@pytest.mark.parametrize(
    ("verdict", "made", "how"),
    [
        ("merged", merged_version, ()),
        ("apply", hooked_version, ("v.verdict = 'apply'", str(BY_HOOK))),
    ],
)
def test_a_row_that_is_made_is_stamped_as_the_function_says(
    sites: Pair, verdict: str, made: Callable[..., RowVersion], how: tuple[str, ...]
) -> None:
    """Two concurrent versions, the site's clock, and a stamp floor; a merge of what a hook made is marked so."""
    chance = random.Random(7)
    pairs = [
        (
            replace(random_version(chance), derived=chance.choice([0, 1, BY_HOOK, BY_HOOK + 1])),
            random_version(chance),
        )
        for _ in range(200)
    ]
    floor = 10**18  # above every clock, so that the stamp is known
    connection = sites.london.connection
    for now_counts in (False, True):
        sites.london.run(f"UPDATE concord.site SET stamp_floor = {0 if now_counts else floor}")
        connection.execute(
            "CREATE TEMPORARY TABLE verdicts (n int, verdict text, s_vector jsonb, p_vector jsonb, made_origin text,"
            " made_changed_at bigint, made_derived int, made_vector jsonb, s_derived int, p_derived int)"
        )
        with connection.cursor().copy(
            "COPY verdicts (n, verdict, s_vector, p_vector, s_derived, p_derived) FROM STDIN"
        ) as copy:
            for n, (one, other) in enumerate(pairs):
                vectors = (vector_to_json(one.vector), vector_to_json(other.vector))
                copy.write_row((n, verdict, *vectors, one.derived, other.derived))
        before = time.time_ns() // 1000
        merged_row.stamp(connection, "pg_temp.verdicts", *how)
        found = connection.execute(
            "SELECT n, made_origin, made_changed_at, made_derived, made_vector FROM verdicts ORDER BY n"
        ).fetchall()
        connection.execute("DROP TABLE verdicts")
        for n, origin, changed_at, derived, vector in found:
            known = (changed_at, 0) if now_counts else (0, floor)
            one, other = pairs[n]
            wanted = made(one, other, "london#1", *known)
            assert (origin, changed_at, derived) == wanted.dot
            assert {name: tuple(entry) for name, entry in vector.items()} == wanted.vector
            assert not now_counts or changed_at >= before - 1_000_000
