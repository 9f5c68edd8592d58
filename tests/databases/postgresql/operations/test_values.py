"""Values that triggers keep as the text of a record, and how they come out of it."""

from collections.abc import Callable

import pytest

from concord.messages.errors import ProvisioningRefused
from concord.tables.manipulation import Manipulation, Rename
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.replicated_sites import Replicated

Make = Callable[..., Replicated]


def test_values_arrive_exactly_whatever_the_users_settings_say(replicated: Make) -> None:
    """A row is kept as text, which is written in the user's session."""
    sites = replicated(
        (
            "CREATE TYPE mood AS ENUM ('low', 'high')",
            "CREATE TABLE day (id int PRIMARY KEY, f float8, d date, t timestamptz, i interval, b bytea, n numeric,"
            " mood mood, list text[], note text, twice int GENERATED ALWAYS AS (id * 2) STORED, j json)",
        ),
        "public.day",
        capture="triggers",
    )
    sites.initialize()
    sites.london.run(
        "SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Tokyo'; SET IntervalStyle = sql_standard;"
        " SET extra_float_digits = -15; SET bytea_output = escape; SET client_encoding = 'LATIN1'",
        "INSERT INTO day VALUES"
        " (1, 0.1 + 0.2, '2026-05-03', '2026-01-02 03:04:05.678901+00', '-1 day 02:03', '\\x00ff',"
        ' 1.50, \'high\', \'{"a,b", NULL, "(\\"x\\")"}\', E\'a\\tb\\n\\\\N\', DEFAULT, \'{"a" : 1, "a":2}\'),'
        " (2, 'NaN', 'infinity', NULL, NULL, '', 'NaN', NULL, '{}', '', DEFAULT, NULL)",
        "UPDATE day SET f = '-Infinity', note = convert_from('\\xe28081', 'UTF8') WHERE id = 2",
    )
    assert sites.run().conversions == 0
    text = "SELECT d::text FROM day d ORDER BY id"
    with sites.london.log_in(sites.london.superuser) as plain:
        assert sites.capetown.rows(text) == plain.execute(text).fetchall()


def test_chosen_columns_travel_under_their_names_at_the_subscriber(replicated: Make) -> None:
    """S0-06; a column that was dropped has left its place in the table."""
    renamed = Manipulation(operations=(Rename(canonical=("plane",), own=("aircraft",)),))
    flight = ReplicatedTable(
        table=parse_table_name("public.flight"), columns=("id", "plane"), manipulations={"capetown": renamed}
    )
    ddl = (
        "CREATE TABLE flight (gone int, secret text DEFAULT 's', plane text, id int PRIMARY KEY)",
        "ALTER TABLE flight DROP gone",
    )
    sites = replicated(ddl, "public.flight")
    sites.capetown.run("ALTER TABLE flight RENAME plane TO aircraft", "ALTER TABLE flight DROP secret")
    sites.tables, sites.settings = (flight,), {"capture": "triggers", "conversions": "refuse"}
    sites.provision()
    sites.initialize()
    sites.london.run(
        "INSERT INTO flight (plane, id) VALUES ('A', 1), (NULL, 2)", "UPDATE flight SET id = 3 WHERE id = 2"
    )
    assert sites.run().operations == 3
    assert sites.capetown.rows("SELECT id, aircraft FROM flight ORDER BY id") == [(1, "A"), (3, None)]


def test_no_cast_of_a_tables_owner_runs_with_the_rights_of_concord(replicated: Make) -> None:
    """Whoever owns a table may say how its rows become text, and text its rows."""
    sites = replicated(("CREATE TABLE own (id int PRIMARY KEY)",), "public.own", capture="triggers")
    sites.initialize()
    for taken, given, other in (
        ("public.own", "text", "'(7)'"),
        ("text", "public.own", "ROW(7)::public.own"),
    ):
        sites.london.run(
            f"CREATE FUNCTION peek({taken}) RETURNS {given} LANGUAGE sql AS $$SELECT {other}$$",
            f"CREATE CAST ({taken} AS {given}) WITH FUNCTION peek({taken}) AS ASSIGNMENT",
        )
    sites.london.run("INSERT INTO own VALUES (1)", "UPDATE own SET id = 2")
    assert (sites.run().entries, sites.are_equal()) == (2, True)


def test_a_type_whose_text_does_not_come_back_is_refused(replicated: Make) -> None:
    sites = replicated(("CREATE TABLE own (id int PRIMARY KEY)",), "public.own", capture="triggers")
    sites.london.run("ALTER TABLE own ADD price money")
    with pytest.raises(ProvisioningRefused, match="the column price of type money"):
        sites.provision()
