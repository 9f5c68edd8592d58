"""Errors in how two sites that are proven equal tell each other who inserted their rows, and in how they start.

Some that no test can find. A tombstone has no row at the site that learns, nor has the mark of a row that has left the
filter.
"""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

TOLD = "tests/link/initialization/test_told_versions.py"
LEARNING = f"{POSTGRESQL}/initialize/told_versions.py"

TOLD_VERSIONS = (
    Mutant(
        "a version is told that is later than the rows that were read",
        LEARNING,
        """            f" AND pg_visible_in_snapshot(p.position, {literal(self.before)}::pg_snapshot)"\n""",
        "",
        f"{TOLD} -k only_what_stood",
    ),
    Mutant(
        "a version is told over an edit of the site's own",
        LEARNING,
        "WHERE p.origin = '' AND NOT p.deleted\"",
        'WHERE NOT p.deleted"',
        f"{TOLD} -k only_what_stood",
    ),
    Mutant(
        "a version is told of a row that is not there",
        LEARNING,
        "WHEN {absent} THEN v.deleted ELSE",
        "WHEN {absent} THEN true ELSE",
        f"{TOLD} -k not_there",
    ),
    Mutant(
        "only the first inserts are told",
        LEARNING,
        "            after, _ = told[-1]\n",
        "            return\n",
        f"{TOLD} -k however_many",
    ),
    Mutant(
        "a row that was changed is told as inserted",
        LEARNING,
        "p.agreed OR p.born AND NOT p.deleted",
        "NOT p.deleted",
        f"{TOLD} -k whose_insert_nobody_knows",
    ),
    Mutant(
        "an insert that was told is sent back",
        LEARNING,
        "       {literal(self.source_shape.site)}, pg_current_xact_id()",
        "       NULL, pg_current_xact_id()",
        f"{TOLD} -k not_sent_back",
    ),
    Mutant(
        "a site whose log is read is told of inserts",
        LEARNING,
        "if self.target_shape.by_log or is_key_mapped",
        "if is_key_mapped",
        f"{TOLD} -k log_is_read",
    ),
    Mutant(
        "the site that joins tells nothing",
        f"{POSTGRESQL}/initialize/pair_of_ends.py",
        "            (self.target, theirs, self.source, ours, there),\n",
        "",
        f"{TOLD} -k that_joins_tells",
    ),
    Mutant(
        "an initialization that was overtaken tells of inserts",
        f"{POSTGRESQL}/initialize/pair_of_ends.py",
        "with target.control() as connection, self._fenced(connection, target.access.name):",
        "with target.control() as connection:",
        f"{TOLD} -k overtaken",
    ),
    Mutant(
        "an initialization that was overtaken starts the links",
        f"{POSTGRESQL}/initialize/common_history.py",
        "with end.control() as connection, link_state.fenced(connection, *fence):",
        "with end.control() as connection:",
        "tests/link/initialization/test_initialize.py -k overtaken",
    ),
    Mutant(
        "a proof's positions are later than the rows that it has read",
        f"{POSTGRESQL}/initialize/plan.py",
        "        self.proven[table] = Proof(here[table], (at_source, at_target))",
        "        at_source, at_target = (one(end.connection, POSITION_QUERY)[0] for end in self._ends)\n"
        "        self.proven[table] = Proof(here[table], (at_source, at_target))",
        f"{TOLD} -k while_the_rows_are_read",
    ),
)
