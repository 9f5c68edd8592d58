"""Remedies: for each key that differs, by the rows that both sites hold of it at this moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from concord.databases.contract.compared_site import ComparedSite, Found, Horizon
from concord.databases.contract.rows import Shape
from concord.rules.repair_rule import Remedy, Rule


@dataclass(frozen=True)
class TableAtSite:
    """One table at one site of the pair."""

    compared: ComparedSite
    shape: Shape
    horizon: Horizon

    def found(self, keys: Sequence[str]) -> dict[str, Found]:
        return self.compared.found(self.shape, self.horizon, keys)


def altered_at(
    ends: Sequence[ComparedSite], shapes: Sequence[Mapping[str, Shape]], tables: Sequence[str]
) -> dict[str, str]:
    """The tables that were altered at one of the sites since these shapes were taken, and what to say of it (F87)."""
    found: dict[str, str] = {}
    for end, at in zip(ends, shapes, strict=True):
        found |= end.altered_since([at[table] for table in tables])
    return found


def remedies(ours: TableAtSite, theirs: TableAtSite, rule: Rule, keys: Sequence[str]) -> dict[str, Remedy]:
    """By key, for those that differ: `ours` is the pair's source, `theirs` its target."""
    if not keys:
        return {}
    source, target = ours.found(keys), theirs.found(keys)
    here, there = ours.compared.site(), theirs.compared.site()
    decided = {}
    for key in keys:
        remedy = rule.remedy(
            source[key].held(here.name, here.origin),
            target[key].held(there.name, there.origin),
            same_content=source[key].image == target[key].image,
        )
        if remedy is not None:
            decided[key] = remedy
    return decided
