"""Errors that let one table's own objects, or one row's encoding, stop the other tables."""

from tests.mutants.mutant import Mutant

OBJECTS = "tests/link/tables/test_failing_objects.py"
ENCODINGS = "tests/link/tables/test_encodings.py"
FUNCTIONS = "tests/databases/postgresql/facts/test_others_functions.py"

FAILING_TABLES = (
    Mutant(
        "an error of a table's own objects is one of the link",
        "concord.databases.postgresql.facts.table_errors:of_table",
        "if not is_of_a_table(error):",
        "if True:",
        f"{OBJECTS} -k rule_stops",
    ),
    Mutant(
        "a table that cannot be written ends the link",
        "concord.transmission.write:_leave_out_failed",
        "if table is None or table in outcome.stopped:",
        "if True:",
        f"{OBJECTS} -k rule_stops",
    ),
    Mutant(
        "a table whose rows cannot be moved ends the link",
        "concord.transmission.transmit:_without_failed",
        "except LinkFailed as error:",
        "except ZeroDivisionError as error:",
        ENCODINGS,
    ),
    Mutant(
        "a row without a form in the other encoding is not named",
        "concord.databases.postgresql.write.untranslatable:_keys",
        "if not part.key:",
        "if True:",
        ENCODINGS,
    ),
    Mutant(
        "a function that finds names by search_path is not looked for",
        "concord.databases.postgresql.facts.others_functions:_BY_PATH",
        "f.prosqlbody IS NULL AND",
        "false AND",
        f"{FUNCTIONS} -k remedy",
    ),
)
