"""Errors that let one table's own objects, or one row's encoding, stop the other tables."""

from tests.mutants.mutant import Mutant

OBJECTS = "tests/link/tables/test_failing_objects.py"
ENCODINGS = "tests/link/tables/test_encodings.py"
RELAY = "tests/databases/postgresql/write/test_relay.py"
READER = "tests/databases/postgresql/compare/test_cut_reader.py"
COMPARISON = "tests/link/comparison/test_compare.py"
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
        "a row that PostgreSQL does not send is not named",
        "concord.databases.postgresql.write.too_large_to_send:_largest",
        "if not part.key:",
        "if True:",
        f"{RELAY} -k does_not_send",
    ),
    Mutant(
        "a table that cannot be read ends the comparison",
        "concord.comparison.compare:_Comparison.run",
        'if error.facts.get("table") != table:',
        "if True:",
        f"{COMPARISON} -k cannot_be_read",
    ),
    Mutant(
        "an error of a value that is read is one of the site",
        "concord.databases.postgresql.facts.table_errors:of_table_read",
        "and not is_refusal(error)",
        "",
        f"{COMPARISON} -k cannot_be_read",
    ),
    Mutant(
        "a table is to blame for whatever keeps a session from a comparison's cut",
        "concord.databases.postgresql.compare.cut_reader:CutReader._in_the_cut",
        "connection = self._at_hand()",
        "with of_table_read(where.table, where.site, private=False):\n                connection = self._at_hand()",
        f"{READER} -k on_the_way",
    ),
    Mutant(
        "the end of a comparison's cut is not one that another run mends",
        "concord.databases.postgresql.compare.cut_reader:CutReader._join",
        "except ENDED as error:",
        "except ZeroDivisionError as error:",
        f"{READER} -k cut_has_ended",
    ),
    Mutant(
        "an error of a table that somebody holds does not say what to do",
        "concord.databases.postgresql.facts.table_errors:of_table",
        "{why}{TRIES_AGAIN}",
        "{why}",
        "tests/databases/postgresql/transaction/test_repetition.py -k so_long_and_no_longer",
    ),
    Mutant(
        "the smallest row is named for one that PostgreSQL does not send",
        "concord.databases.postgresql.write.too_large_to_send:_largest",
        "size DESC",
        "size",
        f"{RELAY} -k does_not_send",
    ),
    Mutant(
        "a function that finds names by search_path is not looked for",
        "concord.databases.postgresql.facts.others_functions:_BY_PATH",
        "f.prosqlbody IS NULL AND",
        "false AND",
        f"{FUNCTIONS} -k remedy",
    ),
    Mutant(
        "an initialization writes a table with a rule",
        "concord.databases.postgresql.initialize.pair_of_ends:PairOfEnds._inspect",
        "_refuse_rules((*here, *there))",
        "pass",
        "tests/link/initialization/test_failing_tables.py -k rule_is_named",
    ),
    Mutant(
        "a replication writes a table with a rule",
        "concord.databases.postgresql.replication.tables:layout",
        "if wrong := ruled + [",
        "if wrong := [",
        "tests/transactional/publications/test_structure.py -k rule",
    ),
    Mutant(
        "a refresh writes a table with a rule",
        "concord.databases.postgresql.snapshots.ends:SnapshotTarget.inspect_target",
        "preflight.rule_problems(table)",
        "()",
        "tests/link/snapshots/test_snapshots.py -k rule",
    ),
    Mutant(
        "an application's own error number ends the link",
        "concord.databases.postgresql.facts.refusal:is_refusal",
        "about_data = bool(state) and not state.startswith(_OTHERS)",
        'about_data = state.startswith(("22", "23", "44", "09", "P0", "54", "38", "39"))',
        f"{OBJECTS} -k 'number_a_function and AP001'",
    ),
    Mutant(
        "a function that raises an error of the server ends the link",
        "concord.databases.postgresql.facts.refusal:_is_raised",
        'error.diag.source_function == "exec_stmt_raise"',
        'error.diag.source_function == "none"',
        f"{OBJECTS} -k 'number_a_function and 57014'",
    ),
)
