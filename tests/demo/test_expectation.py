"""The numbers that the demo expects are worked out from the edits alone; here they are worked out by hand."""

from concord.jobs.link import Direction
from demo.edits import Edit, Kind
from demo.expectation import expect
from demo.sites import CAPETOWN, LONDON

FIRST, SECOND, THIRD = ("AA", 1), ("AA", 2), ("AA", 3)


def edit(site, kind, *keys, **values):
    return Edit(site, "work", "flights", kind, dict.fromkeys(keys, values))


def test_a_row_changed_at_one_site_goes_to_the_other():
    expected = expect(
        [edit(LONDON, Kind.UPDATE, FIRST, SECOND, dep_delay=1), edit(CAPETOWN, Kind.DELETE, THIRD)]
    )
    assert expected.applied == {Direction.FORWARD: {"flights": 2}, Direction.REVERSE: {"flights": 1}}
    assert expected.contested == ()


def test_a_row_changed_at_both_sites_goes_where_it_was_not_changed_last():
    expected = expect(
        [edit(LONDON, Kind.UPDATE, FIRST, dep_delay=1), edit(CAPETOWN, Kind.UPDATE, FIRST, dep_delay=2)]
    )
    assert expected.applied == {Direction.FORWARD: {}, Direction.REVERSE: {"flights": 1}}
    (row,) = expected.contested
    assert (row.winner, row.values, row.lost_values) == (CAPETOWN, {"dep_delay": 2}, {"dep_delay": 1})


def test_the_last_edit_of_a_site_counts_when_it_edits_a_row_twice():
    expected = expect(
        [
            edit(LONDON, Kind.UPDATE, FIRST, dep_delay=1),
            edit(CAPETOWN, Kind.DELETE, FIRST),
            edit(LONDON, Kind.UPDATE, FIRST, dep_delay=3),
        ]
    )
    (row,) = expected.contested
    assert (row.winner, row.values, row.lost_values) == (LONDON, {"dep_delay": 3}, None)


def test_the_number_of_rows_changes_by_what_stands_at_the_end():
    expected = expect(
        [
            edit(LONDON, Kind.INSERT, FIRST, dep_delay=1),
            edit(LONDON, Kind.DELETE, SECOND),
            edit(CAPETOWN, Kind.UPDATE, SECOND, dep_delay=2),
            edit(CAPETOWN, Kind.DELETE, THIRD),
        ]
    )
    assert expected.added == {"flights": 1}
    assert expected.removed == {"flights": 1}


def test_what_both_sites_did_alike_goes_nowhere_and_nobody_loses():
    expected = expect(
        [
            edit(LONDON, Kind.UPDATE, FIRST, dep_delay=None),
            edit(LONDON, Kind.DELETE, SECOND),
            edit(CAPETOWN, Kind.DELETE, SECOND),
            edit(CAPETOWN, Kind.UPDATE, FIRST, dep_delay=None),
        ]
    )
    assert (expected.alike, expected.contested) == ({"flights": 2}, ())
    assert expected.applied == {Direction.FORWARD: {}, Direction.REVERSE: {}}
    assert expected.removed == {"flights": 1}


def test_every_row_that_a_site_edited_is_applied_or_alike_or_lost():
    expected = expect(
        [
            edit(LONDON, Kind.UPDATE, FIRST, SECOND, THIRD, dep_delay=1),
            edit(CAPETOWN, Kind.UPDATE, SECOND, dep_delay=1),
            edit(CAPETOWN, Kind.UPDATE, THIRD, dep_delay=3),
        ]
    )
    assert (expected.edited(LONDON), expected.lost_at(LONDON)) == (3, 1)
    assert (expected.edited(CAPETOWN), expected.lost_at(CAPETOWN)) == (2, 0)


def test_the_edits_contest_rows_in_both_directions_and_delete_against_change(scene):
    contested = [row for row in expect(scene.edits).contested if row.table == "flights"]
    kinds = [(row.winner, row.values is None, row.lost_values is None) for row in contested]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        (CAPETOWN, False, False): 20,
        (LONDON, False, False): 20,
        (CAPETOWN, False, True): 3,
        (LONDON, False, True): 3,
        (CAPETOWN, True, False): 3,
        (LONDON, True, False): 3,
    }


def test_every_planned_edit_changed_a_row_that_its_site_then_remembers(scene):
    planned = {(edit.site, edit.table, key) for edit in scene.edits for key in edit.rows}
    for name, site in scene.sites.items():
        with site.connect_as_superuser() as connection:
            for table in {edit.table for edit in scene.edits if edit.site == name}:
                (stamped,) = connection.execute(f'SELECT count(*) FROM concord."public.{table}"').fetchone()
                assert stamped == len([one for one in planned if one[:2] == (name, table)])
