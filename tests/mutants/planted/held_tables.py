"""Errors that let one table, held, altered or failing, stop the others, or leave its holder unnamed."""

from tests.mutants.mutant import Mutant

HELD = "tests/link/tables/test_held_tables.py"
HOLDERS = "tests/databases/postgresql/facts/test_lock_holders.py"
INITIALIZED = "tests/link/initialization/test_failing_tables.py"

HELD_TABLES = (
    Mutant(
        "a lock timeout ends the run of all tables",
        "concord.databases.postgresql.facts.table_errors:of_table",
        "except _CONTENDED as error:",
        "except ZeroDivisionError as error:",
        f"{HELD} -k 'holds_stops and SHARE'",
    ),
    Mutant(
        "an error of a table that is locked with others names none",
        "concord.databases.postgresql.facts.table_errors:naming",
        "ERRCODE = SQLSTATE, TABLE = {literal(table)};",
        "ERRCODE = SQLSTATE;",
        f"{HELD} -k 'altered and DROP'",
    ),
    Mutant(
        "a table that was altered meanwhile ends the run of all tables",
        "concord.databases.postgresql.transaction.held_tables:_refuse_altered",
        'nothing of it was written",\n            table=name,',
        'nothing of it was written",',
        f"{HELD} -k 'altered and varchar'",
    ),
    Mutant(
        "a foreign key that cannot be repaired ends the run of all tables",
        "concord.databases.postgresql.constraints.references:writing",
        "if table is None:",
        "if True:",
        f"{HELD} -k foreign_key",
    ),
    Mutant(
        "readers are named as holders of rows",
        "concord.databases.postgresql.facts.lock_holders:_SESSIONS",
        "AND (l.strong OR {readers})",
        "AND (true OR {readers})",
        f"{HOLDERS} -k readers",
    ),
    Mutant(
        "an initialization does not name the table that it is at",
        "concord.databases.postgresql.facts.about_table:about",
        'f"{table}: {site}"',
        "site",
        f"{INITIALIZED} -k 'cannot_be_read and london-equal'",
    ),
)
