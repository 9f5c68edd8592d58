"""Flights of which a replication carries some columns and rows, and whose columns have other names at Cape Town."""

from concord.tables.manipulation import Manipulation, Rename
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

BASES = (
    "CREATE TABLE flight (id int PRIMARY KEY, base text, plane text, secret text, note text)",
    "ALTER TABLE flight ALTER note SET STORAGE EXTERNAL",
    "CREATE TABLE seat (id int PRIMARY KEY, flight int)",
)
#: Cape Town's flights, without their secrets; it calls a key and a column otherwise.
RENAMED = Manipulation(
    operations=(
        Rename(canonical=("id",), own=("number",)),
        Rename(canonical=("plane",), own=("aircraft",)),
    )
)
FLIGHT = ReplicatedTable(
    table=parse_table_name("public.flight"),
    columns=("id", "base", "plane", "note"),
    where="base IN ('CPT', 'JNB')",  # type: ignore[arg-type] # read by pydantic
    manipulations={"capetown": RENAMED},
)
LONG = "long " * 20_000


def chosen_flights(replicated: Make) -> Replicated:
    """Two flights of Cape Town's, one of London's; each seat travels."""
    made = replicated(BASES, "public.seat")
    made.capetown.run(
        "ALTER TABLE flight RENAME id TO number",
        "ALTER TABLE flight RENAME plane TO aircraft",
        "ALTER TABLE flight DROP secret",
    )
    made.tables = (FLIGHT, ReplicatedTable(table=parse_table_name("public.seat")))
    made.provision()
    made.london.run(
        f"INSERT INTO flight VALUES (1, 'CPT', 'A', 's', 'n'), (2, 'JNB', 'B', 's', '{LONG}'),"
        f" (3, 'LHR', 'C', 's', '{LONG}'), (4, NULL, 'D', 's', 'n')"
    )
    made.initialize()
    return made
