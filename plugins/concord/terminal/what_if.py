"""`python -m concord conflicts what-if`: which stored conflicts another policy would have decided otherwise."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.configuration.what_if import other_chains
from concord.jobs.ledger import Entry
from concord.jobs.what_if import Judged, Judgement, WhatIf
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import jobs
from concord.repository import ledger
from concord.terminal.shown import Columns, say, show


class _Tables:
    """The questions to each table, made once; None for those that have left the configuration."""

    def __init__(self, configuration: Configuration, names: tuple[str, ...]) -> None:
        self._configuration, self._names = configuration, names
        self._known: dict[tuple[str, str], WhatIf | None] = {}

    def judge(self, entry: Entry) -> Judged:
        place = (entry.synchronization, entry.table_name)
        if place not in self._known:
            self._known[place] = self._made(*place)
        asked = self._known[place]
        if asked is None:
            return Judged(entry, Judgement.UNKNOWN, reason="its table is no longer configured")
        return asked.judge(entry)

    def _made(self, synchronization: str, table: str) -> WhatIf | None:
        if synchronization not in self._configuration.synchronizations:
            return None
        found = [each for each in self._configuration.tables(synchronization) if each.name == table]
        if not found:
            return None
        chains = other_chains(self._configuration, synchronization, table, self._names)
        return WhatIf(chains, {site: found[0].manipulation_at(site) for site in self._configuration.sites})


def what_if(asked: argparse.Namespace, configuration: Configuration) -> int:
    """Judge the chosen entries again and print what would differ; writes nothing anywhere."""
    if asked.synchronization is not None:
        jobs.synchronization_name(configuration, asked.synchronization)
    wanted = ledger.Chosen(asked.synchronization, asked.table, asked.type, asked.since, asked.until)
    tables, differing = _Tables(configuration, asked.policy), list[Judged]()
    counted, unknown = Counter[tuple[str, Judgement]](), Counter[str]()
    for judged in _judged(repository(), wanted, tables):
        counted[judged.entry.table_name, judged.judgement] += 1
        if judged.judgement is Judgement.UNKNOWN:
            unknown[judged.reason] += 1
        if judged.judgement in (Judgement.ANOTHER_ROW, Judgement.HELD) and len(differing) < asked.limit:
            differing.append(judged)
    _print(asked.policy, counted, differing)
    for reason, count in unknown.most_common():
        say(f"could not be re-evaluated: {count}, because {reason}")
    return 0


def _judged(engine: Engine, wanted: ledger.Chosen, tables: _Tables) -> Iterator[Judged]:
    return (tables.judge(entry) for entry in ledger.entries(engine, wanted))


def _print(policy: tuple[str, ...], counted: Counter[tuple[str, Judgement]], differing: list[Judged]) -> None:
    names = sorted({table for table, _ in counted})
    rows = [
        (name, sum(counted[name, each] for each in Judgement), *(counted[name, each] for each in Judgement))
        for name in names
    ]
    headings = {_name(each): each.value for each in Judgement}
    show("tables", f"Under {', '.join(policy)}", Columns(("table", "conflicts", *headings), headings), rows)
    columns = ("conflict", "table", "key", "type", "won", "would_win", "resolver", "reason")
    title = "Rows that would differ, newest first"
    show("differing", title, Columns(columns, prose=("reason",)), map(_line, differing))
    total = sum(
        count for (_, each), count in counted.items() if each in (Judgement.ANOTHER_ROW, Judgement.HELD)
    )
    if total > len(differing):
        say(f"and {total - len(differing)} more; raise --limit, or choose by --table, --type, --since")


def _name(judgement: Judgement) -> str:
    return judgement.name.lower()


def _line(judged: Judged) -> tuple[object, ...]:
    entry = judged.entry
    key = ", ".join("(dropped)" if part is None else part for part in entry.key)
    what = (entry.short_id, entry.table_name, key, entry.conflict_type, entry.winner_site)
    return (*what, judged.would_win, judged.resolver, judged.reason)
