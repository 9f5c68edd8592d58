"""Errors to plant where triggers capture: the order of entries, what is read, and for how long it is kept."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

OPERATIONS = f"{POSTGRESQL}/operations"
READ = f"{POSTGRESQL}/entries/from_triggers.py"
BY_TRIGGERS = "tests/transactional/test_by_triggers.py"
NUMBERING = "tests/databases/postgresql/operations/test_numbering.py"

BY_OPERATIONS = (
    Mutant(
        "entries are in the order in which their transactions began to write",
        f"{OPERATIONS}/numbering.py",
        "OVER (ORDER BY last_place ROWS",
        "OVER (ORDER BY first_place ROWS",
        NUMBERING,
    ),
    Mutant(
        "a transaction that was under way while others were numbered is forgotten",
        f"{OPERATIONS}/numbering.py",
        "UNION ALL SELECT o.transaction, o.place, o.at, o.bytes FROM {_UNDER_WAY}) n",
        ") n",
        NUMBERING,
    ),
    Mutant(
        "one replication's operations are deleted although another needs them",
        f"{OPERATIONS}/kept.py",
        '" WHERE k.level < e.number AND o.relation = ANY (k.relations))",',
        '" WHERE k.level < e.number AND false)",',
        f"{BY_TRIGGERS} -k each_replication",
    ),
    Mutant(
        "operations of one table wait for a replication of another one",
        f"{OPERATIONS}/kept.py",
        '" WHERE k.level < e.number AND o.relation = ANY (k.relations))",',
        '" WHERE k.level < e.number)",',
        f"{BY_TRIGGERS} -k each_replication",
    ),
    Mutant(
        "operations go on after a restore of the publisher",
        f"{OPERATIONS}/kept.py",
        "if level > kept.end or kept.incarnation != kept.incarnation_now:",
        "if level > kept.end:",
        f"{BY_TRIGGERS} -k not_whole",
    ),
    Mutant(
        "a user's trigger is called before the operation that it follows is kept",
        f"{OPERATIONS}/triggers.py",
        '"RI_concord_operation", "RI_concord_truncate"',
        '"zz_RI_concord_operation", "RI_concord_truncate"',
        f"{BY_TRIGGERS} -k write_the_row_again",
    ),
    Mutant(
        "operations are read by the columns of another structure",
        READ,
        "if not all(each[9] in (True, None) for each in found):",
        "if False:",
        f"{BY_TRIGGERS} -k another_structure",
    ),
    Mutant(
        "a structure may change while operations are read",
        READ,
        "        self._refuse_altered()\n",
        "",
        f"{BY_TRIGGERS} -k while_operations",
    ),
    Mutant(
        "a row that a trigger wrote out of turn is replayed in the wrong order",
        READ,
        "if max(each.depth for each in group) < 2:",
        "if True:",
        f"{BY_TRIGGERS} -k out_of_turn",
    ),
    Mutant(
        "a cast of a table's owner runs with the rights of Concord",
        f"{OPERATIONS}/table.py",
        "format('%s', NEW)",
        "NEW::text",
        "tests/databases/postgresql/operations/test_values.py -k no_cast",
    ),
    Mutant(
        "users' settings say how their values are kept",
        f"{OPERATIONS}/table.py",
        "SET jit = off{_SETTINGS} AS",
        "SET jit = off AS",
        "tests/databases/postgresql/operations/test_values.py -k users_settings",
    ),
    Mutant(
        "users' operations are kept although no replication can go on with them",
        "plugins/concord/transactional/upkeep.py",
        "        replication.publisher.drop_log()\n",
        "",
        f"{BY_TRIGGERS} -k keeps_nothing",
    ),
)
