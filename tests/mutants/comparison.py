"""Errors to plant in comparisons and repairs.

Some that no test can find, since others stand behind them: keys in flight that are left in their buckets (they are only
read once more), rows that are not counted (their hashes differ), how many buckets there are, a position that is read at
the site it is of (it can only lie further back).
"""

from __future__ import annotations

from tests.mutants.planted import LINK, POSTGRESQL, Mutant

COMPARE = f"{LINK}/test_compare.py"
REPAIR = f"{LINK}/test_repair.py"

COMPARISON = (
    Mutant(
        "buckets whose hashes differ are not looked at",
        "spark_jobs/comparing.py",
        '"x1 <> 0 OR x2 <> 0 OR source_rows',
        '"source_rows',
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "versions are not compared",
        "spark_jobs/comparing.py",
        "different = ~(same_row & same_version)",
        "different = ~same_row",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "a difference is told with its sides swapped",
        "spark_jobs/comparing.py",
        ".when(~at_target, F.lit(Kind.ONLY_SOURCE))",
        ".when(~at_target, F.lit(Kind.ONLY_TARGET))",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "what the reverse link has not sent yet is a difference",
        "spark_jobs/comparing.py",
        """                _pending("source_", "target_", self.priorities)
                | _pending("target_", "source_", self.priorities)
""",
        """                _pending("source_", "target_", self.priorities)
""",
        f"{COMPARE} -k not_sent_yet",
    ),
    Mutant(
        "whatever has arrived lately is in flight",
        "spark_jobs/comparing.py",
        'F.expr(f"coalesce({here}arrived AND {news}, false)")',
        'F.expr(f"coalesce({here}arrived AND ({news} OR true), false)")',
        f"{COMPARE} -k announced_again",
    ),
    Mutant(
        "each cut is taken by the position of the other link",
        "spark_jobs/compare.py",
        "return Cut(forward, floor), Cut(reverse, floor)",
        "return Cut(reverse, floor), Cut(forward, floor)",
        f"{COMPARE} -k not_sent_yet",
    ),
    Mutant(
        "the lower of the two sites' stamp floors counts",
        "spark_jobs/compare.py",
        "floor = max(source.site().stamp_floor,",
        "floor = min(source.site().stamp_floor,",
        f"{COMPARE} -k cleaned_away",
    ),
    Mutant(
        "tombstones that cleanup may have taken at one site differ",
        f"{POSTGRESQL}/compare.py",
        'NOT p.agreed AND NOT ({old})"',
        'NOT p.agreed"',
        f"{COMPARE} -k cleaned_away",
    ),
    Mutant(
        "tombstones that are agreed on differ",
        f"{POSTGRESQL}/compare.py",
        "p.origin <> '' AND NOT p.agreed AND NOT",
        "p.origin <> '' AND NOT",
        f"{COMPARE} -k cleaned_away",
    ),
    Mutant(
        "NULL equals an empty text",
        f"{POSTGRESQL}/compare.py",
        "return f\"ROW({', '.join(shape.canonical_row('t'))})::text\"",
        "texts = [f\"coalesce({text}, '')\" for text in shape.canonical_row('t')]\n"
        "    return f\"ROW({', '.join(texts)})::text\"",
        f"{COMPARE} -k what_its_columns_are",
    ),
    Mutant(
        "columns are hashed as one text",
        f"{POSTGRESQL}/compare.py",
        "return f\"ROW({', '.join(shape.canonical_row('t'))})::text\"",
        "return f\"concat({', '.join(shape.canonical_row('t'))})\"",
        f"{COMPARE} -k what_its_columns_are",
    ),
    Mutant(
        "only some columns are hashed",
        f"{POSTGRESQL}/compare.py",
        "return f\"ROW({', '.join(shape.canonical_row('t'))})::text\"",
        "return f\"ROW({', '.join([*shape.canonical_row('t')][:2])})::text\"",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "numbers are hashed by their value",
        f"{POSTGRESQL}/compare.py",
        "return f\"ROW({', '.join(shape.canonical_row('t'))})::text\"",
        "return f\"replace(ROW({', '.join(shape.canonical_row('t'))})::text, '0,', ',')\"",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "keys are told by their form",
        f"{POSTGRESQL}/compare.py",
        'return f"trim_scale({expression})::text"',
        'return f"({expression})::text"',
        f"{COMPARE} -k many_forms",
    ),
    Mutant(
        "a comparison of some tables compares all",
        "spark_jobs/opening.py",
        "tables = chosen(job.tables, job.chosen)",
        "tables = job.tables",
        f"{COMPARE} -k one_table_alone",
    ),
    Mutant(
        "as many differences are kept as there are",
        "spark_jobs/compare.py",
        "compared.first(self.job.kept)",
        "compared.first(1000)",
        f"{COMPARE} -k first_are_kept",
    ),
    Mutant(
        "a plan of a repair fences the links",
        "spark_jobs/compare.py",
        "if job.repair is not Repair.APPLY:",
        "if job.repair is Repair.NONE:",
        f"{COMPARE} -k every_kind",
    ),
    Mutant(
        "a repair overrides what a user has written meanwhile",
        f"{POSTGRESQL}/guard.py",
        """    f"coalesce(s.concord_resolver = {literal(REPAIR)}, false) AND s.concord_against ="
    " coalesce(p.origin, '') || '/' || coalesce(p.changed_at, 0) || '/' || coalesce(p.derived, 0)\"""",
        """    f"s.concord_resolver = {literal(REPAIR)}\"""",
        f"{REPAIR} -k not_overwritten",
    ),
    Mutant(
        "a row that a repair replaces is not logged",
        "spark_jobs/repairing.py",
        '"source_wins" if own and remedy.replaces else "apply",',
        '"apply",',
        f"{REPAIR} -k prefer_one",
    ),
    Mutant(
        "a repair writes at one site alone",
        "spark_jobs/repairing.py",
        "here = (turn + 1) % 2  #",
        "here = 1  #",
        f"{REPAIR} -k prefer_one",
    ),
    Mutant(
        "nobody is preferred",
        "spark_jobs/compare.py",
        "return Rule(chains, priorities, self.job.prefer)",
        "return Rule(chains, priorities)",
        f"{REPAIR} -k prefer_one",
    ),
    Mutant(
        "a repaired row keeps its version",
        "plugins/concord/repair.py",
        "old.origin, (0, 0))[1] if _own(old, vector) else 0) + 1",
        "old.origin, (0, 0))[1] if _own(old, vector) else 0)",
        "tests/core/test_repair.py",
    ),
    Mutant(
        "a repair that was overtaken writes",
        f"{POSTGRESQL}/link_state.py",
        'AND epoch = {epoch}"\n',
        'AND epoch >= {epoch}"\n',
        f"{REPAIR} -k overtaken",
    ),
)
