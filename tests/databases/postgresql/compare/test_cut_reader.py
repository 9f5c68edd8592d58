"""A reader of a comparison: it answers in its site's cut or not at all, and holds few rows at once."""

from dataclasses import replace

import psycopg
import pytest

from concord.databases.postgresql.compare import cut_reader
from concord.databases.postgresql.compare.cut_reader import CutReader
from concord.messages.errors import ConcordError, PrivilegeMissing, SiteUnavailable, StructureChanged
from concord.versions.row_version import ABSENT
from tests.given.site import READER
from tests.given.two_questioned_sites import QuestionedSites, held

COUNT = "SELECT 0, count(*), 0, 0 FROM public.number"


def rows(reader: CutReader) -> int:
    with reader:
        return reader.sums(COUNT)[0].rows


def test_every_reader_answers_in_the_cut_whatever_is_committed_since(sites: QuestionedSites) -> None:
    sites.write("number", "(1, 'x', 1)")
    with sites.cut("number") as (ours, _):
        sites.write("number", "(2, 'later', 1)")
        readers = [ours.own_reader, *ours.travelling_readers()]
        assert [rows(reader) for reader in readers] == [1, 1, 1]
    with sites.cut("number") as (ours, _):
        assert rows(ours.own_reader) == 2


def test_rows_that_change_while_they_are_read_are_read_as_they_were(
    sites: QuestionedSites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_reader, "ROWS_AT_ONCE", 2)
    sites.write("number", *(f"({key}, 'x', 1)" for key in range(5)))
    with sites.cut("number") as (ours, theirs), ours.own_reader as reader:
        before = held(theirs, range(64))
        found = reader.held(ours.held(range(64)))
        first = next(found)
        sites.london.run("UPDATE number SET note = 'changed'", "DELETE FROM number WHERE id > 2")
        assert [first, *found] == before


def test_as_many_readers_as_the_site_allows_and_none_is_opened_before_it_is_asked(
    sites: QuestionedSites,
) -> None:
    sessions = (
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = '{READER}'"
    )
    with sites.cut("number") as (ours, _):
        before = sites.london.value(sessions)
        readers = ours.travelling_readers()
        assert len(readers) == sites.pair.london.access.readers == len(ours.readers())
        assert sites.london.value(sessions) == before


def test_a_reader_that_stands_in_another_cut_answers_nothing(sites: QuestionedSites) -> None:
    """F06."""
    with sites.cut("number") as (ours, _):
        (reader, *_) = ours.travelling_readers()
        other = CutReader(replace(reader.where, position="1:1:"))
        with pytest.raises(SiteUnavailable, match=r"^london: a reader could not join the cut"), other:
            other.sums(COUNT)
        assert other.opened is None, "its connection is closed"


def test_a_reader_whose_cut_has_ended_answers_nothing(sites: QuestionedSites) -> None:
    """The table is not to blame, and the next run has another cut."""
    with sites.cut("number") as (ours, _):
        reader = ours.travelling_readers()[0]
    with pytest.raises(SiteUnavailable, match=r"^london: the cut has ended; run it again$"), reader:
        reader.sums(COUNT)


def test_an_error_on_the_way_to_the_cut_is_not_the_tables(sites: QuestionedSites) -> None:
    with sites.cut("number") as (ours, _):
        (reader, *_) = ours.travelling_readers()
        other = CutReader(replace(reader.where, preamble=("SELECT 1 / 0",)))
        with pytest.raises(ConcordError, match=r"^london: division by zero \(SQLSTATE 22012\)$"), other:
            other.sums(COUNT)


def test_nor_is_the_table_to_blame_for_a_connection_that_ends(sites: QuestionedSites) -> None:
    with sites.cut("number") as (ours, _):
        (reader, *_) = ours.travelling_readers()
        with pytest.raises(SiteUnavailable, match=r"^london: .*The next run tries again"), reader:
            reader.sums("SELECT 0, 0, 0, pg_terminate_backend(pg_backend_pid())")


def test_a_reader_closes_the_connection_that_it_opened_and_not_the_one_of_the_cut(
    sites: QuestionedSites,
) -> None:
    with sites.cut("number") as (ours, _):
        travelling, own = ours.travelling_readers()[0], ours.own_reader
        with travelling:
            travelling.sums(COUNT)
            opened = travelling.opened
        with own:
            own.sums(COUNT)
            assert own.opened is None
        assert opened is not None
        assert (opened.closed, travelling.opened, rows(ours.own_reader)) == (True, None, 0)


@pytest.mark.parametrize("private", [False, True])
def test_an_error_of_a_table_names_it_and_repeats_no_value_of_a_private_column(
    sites: QuestionedSites, private: bool
) -> None:
    with sites.cut("number") as (ours, _):
        (reader, *_) = ours.travelling_readers()
        asking = CutReader(replace(reader.where, private=private))
        with pytest.raises(StructureChanged) as raised, asking:
            asking.sums("SELECT 'a secret'::int, 0, 0, 0")
    assert raised.value.message.startswith("public.number: london cannot read it: ")
    assert raised.value.facts["table"] == "public.number"
    assert ("a secret" in raised.value.message) is not private
    assert isinstance(raised.value.__cause__, psycopg.Error) is not private


def test_a_reader_without_the_right_says_so(sites: QuestionedSites) -> None:
    sites.london.run(f"REVOKE SELECT ON number FROM {READER}")
    try:
        with sites.cut("number") as (ours, _), pytest.raises(PrivilegeMissing, match=r"^london: "):
            rows(ours.travelling_readers()[0])
    finally:
        sites.london.run(f"GRANT SELECT ON number TO {READER}")


# What a site holds of some keys


@pytest.mark.parametrize(("most", "found"), [(2, ['["1"]', '["2"]']), (1, None)])
def test_keys_that_arrived_are_listed_up_to_a_limit(
    sites: QuestionedSites, most: int, found: list[str] | None
) -> None:
    for key in ("1", "2"):
        sites.version(sites.london, "number", key)
    shape, since = sites.shape("number"), replace(sites.horizon, since="1:1:")
    keys = sites.ends[0].arrived_keys(shape, since, most)
    assert (keys and sorted(keys)) == found
    assert sites.ends[0].arrived_keys(shape, sites.horizon, most) == []


def test_the_state_of_a_key_is_that_of_this_moment_and_every_key_has_one(sites: QuestionedSites) -> None:
    sites.write("number", "(-1, 'x', 1)", "(2, 'y', 1)")
    sites.london.run("DELETE FROM number WHERE id = 2")
    sites.version(sites.london, "number", "2", deleted="true")
    found = sites.ends[0].found(sites.shape("number"), sites.horizon, ['["-1"]', '["2"]', '["3"]'])
    assert [found[key].image is None for key in ('["-1"]', '["2"]', '["3"]')] == [False, True, True]
    assert found['["2"]'].version.deleted
    assert found['["-1"]'].version == found['["3"]'].version == ABSENT


def test_whole_rows_are_exact_texts_of_the_listed_keys_that_have_one(sites: QuestionedSites) -> None:
    sites.write("number", "(-1, '', 1.50)", "(2, NULL, 1)")
    found = sites.ends[0].images(sites.shape("number"), ['["-1"]', '["2"]', '["3"]'])
    assert found == {
        '["-1"]': {"id": "-1", "note": "", "price": "1.50"},
        '["2"]': {"id": "2", "note": None, "price": "1"},
    }


def test_of_no_keys_there_are_no_rows(sites: QuestionedSites) -> None:
    shape = sites.shape("number")
    assert (sites.ends[0].images(shape, []), sites.ends[0].found(shape, sites.horizon, [])) == ({}, {})
