"""Errors to plant in each second form of a rule (docs/rules.md): its property test must find that it says otherwise."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

IN_SQL = "tests/databases/postgresql/write/test_second_forms.py"
RULE = "tests/link/conflicts/test_same_rule.py"
DAMAGE = "tests/link/conflicts/test_same_damage.py"
LOAD = "tests/link/initialization/test_same_initialization.py"
STAMP = "tests/databases/postgresql/capture/test_stamp.py"
MAPPING = "tests/link/mapping/test_same_mapping.py"
STEPS = "spark_jobs/steps"
SPARK_DECIDES = f"{RULE} -k spark_decides"

SECOND_FORMS = (
    # SQL
    Mutant(
        "SQL unites two vectors by the first one's entries",
        f"{POSTGRESQL}/provision/control.py",
        "greatest(one -> e.key, other -> e.key)",
        "coalesce(one -> e.key, other -> e.key)",
        f"{IN_SQL} -k sql_unites",
    ),
    Mutant(
        "SQL stamps a version as late as what it has seen",
        f"{POSTGRESQL}/facts/row_version.py",
        "concord.vector_newest({vector}) + 1",
        "concord.vector_newest({vector})",
        f"{STAMP} -k makes_itself",
    ),
    Mutant(
        "capture stamps an edit as late as what the row has seen",
        f"{POSTGRESQL}/capture/stamp.py",
        "THEN {_NEWEST} + 1 ELSE excluded.changed_at",
        "THEN {_NEWEST} ELSE excluded.changed_at",
        f"{STAMP} -k capture_stamps",
    ),
    Mutant(
        "SQL takes the latest stamp that may be for one from the future",
        f"{POSTGRESQL}/write/suspicious.py",
        'f"({stamp} > {CLOCK} + {allowed}"',
        'f"({stamp} >= {CLOCK} + {allowed}"',
        f"{IN_SQL} -k sql_finds_a_stamp",
    ),
    Mutant(
        "the write step supersedes what has seen the present version as well",
        f"{POSTGRESQL}/write/guard.py",
        "WHEN {_BACKWARD} AND NOT {_FORWARD} THEN",
        "WHEN {_BACKWARD} THEN",
        f"{IN_SQL} -k the_write_step_decides",
    ),
    Mutant(
        "the conflict log takes an update that both know for two inserts",
        f"{POSTGRESQL}/write/conflict_log.py",
        "(v.p_born OR v.p_origin = '') AND NOT {shared}",
        "(v.p_born OR v.p_origin = '')",
        f"{IN_SQL} -k conflict_log_gives",
    ),
    Mutant(
        "SQL puts the greater version first into a conflict's id",
        f"{POSTGRESQL}/write/conflict_id.py",
        'lesser = f"{_ranked(one)} <= {_ranked(other)}"',
        'lesser = f"{_ranked(one)} >= {_ranked(other)}"',
        f"{IN_SQL} -k conflict_log_gives",
    ),
    Mutant(
        "SQL puts nothing of the type into a loss's id",
        f"{POSTGRESQL}/write/conflict_id.py",
        "ARRAY[{literal(kind)}, {first}, {second}, {rule}]",
        "ARRAY[{first}, {second}, {rule}]",
        f"{IN_SQL} -k sql_gives_a_loss",
    ),
    Mutant(
        "the write step takes two rows for the same thing that differ",
        f"{POSTGRESQL}/write/guard.py",
        'there = f"coalesce(NOT {differs}, false)"',
        'there = "true"',
        f"{IN_SQL} -k the_write_step_decides",
    ),
    Mutant(
        "a row of another origin that was altered is damaged to the write step",
        f"{POSTGRESQL}/write/restoration.py",
        'own = f"s.concord_origin = {literal(source_origin)} AND s.concord_derived = 0"',
        'own = "s.concord_derived = 0"',
        f"{IN_SQL} -k damage",
    ),
    Mutant(
        "a load forgets that a row was born",
        f"{POSTGRESQL}/initialize/load_copy.py",
        'f"{gone}, p.born, {literal(shape.site)}',
        'f"{gone}, false, {literal(shape.site)}',
        f"{LOAD} -k from_copy_to_copy",
    ),
    Mutant(
        "a row filter lets rows pass of which nothing is known",
        f"{POSTGRESQL}/rows/row_filter.py",
        'return f"coalesce({_sql(where.condition, columns, row)}, false)"',
        'return f"coalesce({_sql(where.condition, columns, row)}, true)"',
        "tests/databases/postgresql/rows/test_row_filter.py -k condition_holds",
    ),
    # Spark
    Mutant(
        "Spark takes a version for unseen that another one has just seen",
        f"{STEPS}/detect.py",
        "coalesce({seen} >= array(",
        "coalesce({seen} > array(",
        SPARK_DECIDES,
    ),
    Mutant(
        "Spark applies the lesser of two versions that include each other",
        f"{STEPS}/detect.py",
        '(f"{forward} AND (NOT {backward} OR {greater})", "\'apply\'")',
        "(forward, \"'apply'\")",
        SPARK_DECIDES,
    ),
    Mutant(
        "Spark takes an update that both know for two inserts",
        f"{STEPS}/resolve.py",
        'f"{both_born} AND NOT {share_history(source.prefix, target.prefix)}"',
        'f"{both_born}"',
        f"{RULE} -k spark_names_the_type",
    ),
    Mutant(
        "Spark lets the smaller value win where the greater one should",
        f"{STEPS}/resolve.py",
        "return _compared(resolver, *((ours, theirs) if resolver.greatest else (theirs, ours)))",
        "return _compared(resolver, theirs, ours)",
        f"{RULE} -k opinion",
    ),
    Mutant(
        "of two negative numbers Spark takes the longer one for the greater",
        f"{STEPS}/resolve.py",
        "f\"concat({_complement(fraction)}, ':')\"",
        "_complement(fraction)",
        f"{RULE} -k spark_sorts",
    ),
    Mutant(
        "a row and a delete are the same thing to Spark",
        f"{STEPS}/detect.py",
        '        "deleted = p_deleted",\n',
        "",
        f"{RULE} -k row_of_nulls",
    ),
    Mutant(
        "a derived row that was altered is damaged to Spark",
        f"{STEPS}/damage.py",
        'own = f"origin = {text(self.source_origin)} AND derived = 0"',
        'own = f"origin = {text(self.source_origin)}"',
        f"{DAMAGE} -k spark_finds",
    ),
    Mutant(
        "Spark loads rows that have left the filter",
        f"{STEPS}/initialized_rows.py",
        'shared = incoming.where(~F.col("out_of_scope") & brought)',
        "shared = incoming.where(brought)",
        f"{LOAD} -k spark_loads",
    ),
    Mutant(
        "Spark announces the row of an agreed version",
        f"{STEPS}/initialized_rows.py",
        'F.when(new | agreed, "insert")',
        'F.when(new, "insert")',
        f"{LOAD} -k spark_loads",
    ),
    Mutant(
        "Spark announces a tombstone that all have agreed to forget",
        f"{STEPS}/initialized_rows.py",
        '~(agreed & F.col("deleted")) if way.announced else F.lit(True)',
        "F.lit(True)",
        f"{LOAD} -k spark_loads",
    ),
    Mutant(
        "Spark lets a text pass that is one longer than the type",
        f"{STEPS}/manipulate.py",
        "conditions.append(F.length(value) <= form.longest)",
        "conditions.append(F.length(value) <= form.longest + 1)",
        f"{MAPPING} -k spark_does",
    ),
)
