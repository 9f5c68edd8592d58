"""Tables that the subscriber keeps differently are compared as both sites know them (S0-06, S2-23)."""

from tests.given.chosen_flights import chosen_flights
from tests.given.compared_replication import compare, replayed_beside, table, when
from tests.given.mapped_replication import account, begin_mapped
from tests.given.replicated_accounts import Make


def test_mapped_columns_are_compared_by_the_values_that_they_stand_for(replicated: Make) -> None:
    """S0-06: a mapping of every kind; what a constant or a default of the subscriber's holds is its own."""
    sites = begin_mapped(replicated)
    sites.london.run(*(account(key, note=f"'n {key}'") for key in range(1, 6)))
    sites.initialize()
    sites.capetown.run(
        "UPDATE account SET full_name = 'Ada Byron' WHERE id = 2",
        "UPDATE account SET number = '654321' WHERE id = 3",
        "UPDATE account SET branch = 1, region = 'XX' WHERE id = 4",
    )
    found = compare(sites)
    assert sorted(each.key for each in found.differences) == [("2",), ("3",)]
    assert table(found).equal == 3
    meanwhile = replayed_beside(sites, "UPDATE account SET first = 'Eve', status = 'I' WHERE id = 5")
    found = compare(sites, when("target_cut", meanwhile))
    assert (table(found).differing, table(found).in_flight) == (2, 1)


def test_rows_and_columns_that_are_chosen_are_compared_and_no_others(replicated: Make) -> None:
    """S2-23: a flight that leaves the filter leaves Cape Town; secrets and other bases' flights are London's alone."""
    sites = chosen_flights(replicated)
    assert compare(sites).found == 0
    meanwhile = replayed_beside(
        sites,
        "UPDATE flight SET base = 'LHR' WHERE id = 1",
        "UPDATE flight SET plane = 'Z', secret = 't' WHERE id = 2",
        "UPDATE flight SET base = 'CPT' WHERE id = 3",
    )
    found = table(compare(sites, when("target_cut", meanwhile)), "public.flight")
    assert (found.in_flight, found.differences) == (3, 0)
    found = table(compare(sites), "public.flight")
    assert (found.source_rows, found.target_rows, found.equal) == (2, 2, 2)
    sites.capetown.run("INSERT INTO flight VALUES (9, 'LHR', 'X', 'stranger')")
    [difference] = compare(sites).differences
    assert (difference.key, difference.kind.value) == (("9",), "only_target")
