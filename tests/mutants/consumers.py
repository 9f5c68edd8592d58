"""Errors to plant where others read a replication's transactions: one that is lost, or doubled, would go unseen."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

CONSUME = "plugins/concord/transactional/consume.py"
CONSUMED = "tests/transactional/consumed/test_consumed.py"

CONSUMERS = (
    Mutant(
        "a consumer reads on where its log begins later",
        CONSUME,
        "        _refuse_lost(job, publisher, since)\n",
        "",
        f"{CONSUMED} -k does_not_go_on",
    ),
    Mutant(
        "a consumer that has begun begins again, and misses what waits",
        CONSUME,
        "if not anew and publisher.confirmed() is not None:",
        "if False:",
        f"{CONSUMED} -k does_not_go_on",
    ),
    Mutant(
        "provision takes away the operations that a consumer waits for",
        f"{POSTGRESQL}/replication/provision.py",
        "for name in (each.name, *each.consumers)",
        "for name in (each.name,)",
        f"{CONSUMED} -k max_delta",
    ),
    Mutant(
        "operations that came before the end of their transaction are lost",
        f"{POSTGRESQL}/entries/read_back.py",
        "waiting = [row for row in waiting if row[0] > batch.last]",
        "waiting = []",
        f"{CONSUMED} -k between_two",
    ),
)
