"""Errors to plant in what holds a run or stops a table: brakes, oscillation, stamps from the future.

One that no test can find: a plan that weighs. It stages nothing, and so there is nothing to hold.
"""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

BRAKES = (
    Mutant(
        "deletes that lose are weighed where the target judges them",
        "plugins/concord/transmission/transmit.py",
        "        if not unjudged:\n            raise\n",
        "        raise\n",
        "tests/link/brakes/test_brakes.py -k deletes_are_weighed_alone",
    ),
    Mutant(
        "a share that is just reached is exceeded",
        "plugins/concord/rules/brake.py",
        "rows >= smallest_table and count > self.share * rows",
        "rows >= smallest_table and count >= self.share * rows",
        "tests/rules/test_brake.py -k half_of_a_table",
    ),
    Mutant(
        "a number of rows that is just reached is exceeded",
        "plugins/concord/rules/brake.py",
        "return by_share or (self.rows is not None and count > self.rows)",
        "return by_share or (self.rows is not None and count >= self.rows)",
        "tests/rules/test_brake.py",
    ),
    Mutant(
        "shares hold for tables of any size",
        "plugins/concord/rules/brake.py",
        "self.share is not None and rows >= smallest_table and count",
        "self.share is not None and count",
        "tests/rules/test_brake.py -k half_of_a_table",
    ),
    Mutant(
        "an approval holds for a later run",
        "plugins/concord/rules/brake.py",
        "(self.table, self.kind, self.since) == (hold.table, hold.kind, since)",
        "(self.table, self.kind) == (hold.table, hold.kind)",
        "tests/rules/test_brake.py -k as_long_as",
    ),
    Mutant(
        "an approval holds for any number of rows",
        "plugins/concord/rules/brake.py",
        "return same and hold.count <= self.up_to",
        "return same",
        "tests/rules/test_brake.py -k many_times",
    ),
    Mutant(
        "inserts count",
        f"{POSTGRESQL}/write/effect.py",
        """CROSS JOIN LATERAL (SELECT t.* FROM {staged.shape.table.sql} t"
        f" WHERE {staged.shape.same_key('t', 's')} OFFSET 0) t\"""",
        """LEFT JOIN LATERAL (SELECT t.* FROM {staged.shape.table.sql} t"
        f" WHERE {staged.shape.same_key('t', 's')} OFFSET 0) t ON true\"""",
        "tests/link/brakes/test_brakes.py -k inserts_never",
    ),
    Mutant(
        "updates count as deletes",
        f"{POSTGRESQL}/write/effect.py",
        "return f\"s.concord_gone AND {shape.in_scope('t')}\"",
        "return f\"{shape.in_scope('t')}\"",
        "tests/link/brakes/test_brakes.py -k only_those_that_win",
    ),
    Mutant(
        "deletes that lose count",
        f"{POSTGRESQL}/write/effect.py",
        "WHERE s.concord_verdict IN ({', '.join(map(literal, WINNING))})\"",
        'WHERE true"',
        "tests/link/brakes/test_brakes.py -k only_those_that_win",
    ),
    Mutant(
        "every run is weighed",
        "plugins/concord/transmission/brake.py",
        "Effect(deletes=removals,",
        "Effect(deletes=staged.rows,",
        "tests/link/brakes/test_brakes.py -k only_deletes",
    ),
    Mutant(
        "a run that is held moves the position",
        "plugins/concord/transmission/transmit.py",
        "    outcome.check_complete()\n    return outcome\n",
        "    outcome.check_complete()\n    remember(link, outcome)\n    return outcome\n",
        "tests/link/brakes/test_brakes.py -k 'mass_delete and forward'",
    ),
    Mutant(
        "a rebound counts however long ago the last one was",
        f"{POSTGRESQL}/write/suspicious.py",
        'going_on = f"p.rebounded_in IN {self._recent}{most}"',
        'going_on = f"true{most}"',
        "tests/link/brakes/test_oscillation.py -k now_and_then",
    ),
    Mutant(
        "rebounds are counted by table",
        f"{POSTGRESQL}/write/suspicious.py",
        'latched = f"coalesce(p.rebounds >= {self.rebounds}, false) AND',
        'latched = f"(SELECT max(r.rebounds) FROM concord.\\"{self.table}\\" r) >= {self.rebounds} AND',
        "tests/link/brakes/test_oscillation.py -k names_both",
    ),
    Mutant(
        "a table that is stopped is let go by the runs that leave it out",
        f"{POSTGRESQL}/write/suspicious.py",
        "WHERE NOT {stopped}",
        "WHERE true",
        "tests/link/brakes/test_oscillation.py -k names_both",
    ),
    Mutant(
        "an approval does not begin the count anew",
        f"{POSTGRESQL}/write/suspicious.py",
        'most = f" AND p.rebounds < {self.rebounds}" if self.rebounds else ""',
        'most = ""',
        "tests/link/brakes/test_oscillation.py -k names_both",
    ),
    Mutant(
        "a conflict at every run is taken for an oscillation",
        f"{POSTGRESQL}/write/suspicious.py",
        "if met.isdisjoint(",
        "if met is not None or met.isdisjoint(",
        "tests/link/brakes/test_oscillation.py -k both_sites",
    ),
    Mutant(
        "a stamp may be behind what the row has seen",
        f"{POSTGRESQL}/write/suspicious.py",
        "coalesce(concord.vector_newest({vector}), 0) + {allowed}",
        "coalesce(concord.vector_newest({vector}), 0) - {allowed}",
        "tests/link/waiting/test_future_stamps.py -k poisons_no_other",
    ),
    Mutant(
        "a stamp from the future is adopted",
        f"{POSTGRESQL}/write/suspicious.py",
        'return "false" if self.skew is None else ahead(',
        'return "false" if self.skew is not None else ahead(',
        "tests/link/waiting/test_future_stamps.py -k poisons_no_other",
    ),
)
