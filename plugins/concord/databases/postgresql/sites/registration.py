"""The provisioned state, remembered at the site: a later run sees what has changed since (F51, F53, F86)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture import private_columns
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts.catalogue import Row, Table
from concord.databases.postgresql.facts.catalogue_queries import TRIGGER_STATE
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.rows.shape import shape_of
from concord.databases.postgresql.sites import mark_problems, preflight
from concord.tables.manipulation import Manipulation
from concord.tables.replication_set import ReplicatedTable
from concord.tables.structure import differing_labels


@dataclass(frozen=True, slots=True)
class Registered:
    """One table as it was when the site was last provisioned."""

    key: list[str]
    structure: str
    triggers: Mapping[str, str]
    columns: Mapping[str, Any] | None  #: name → {type, descriptor, listed}; None from an older Concord
    keeps_base: bool  #: triggers keep before-images
    tracking: Mapping[str, str]  #: the application's marks that stand for triggers; empty where triggers are
    private: Mapping[str, Any]  #: what the ledger does not show of it
    by_log: bool = False  #: the site's log is read for it
    history_lost: str | None = None  #: why the log does not tell all that became of it


#: Every table of a provisioned site, and whether it takes private values out of what is logged.
COLUMNS = f"""
array(SELECT to_json(r) FROM concord.replicated_table r) AS registered, {private_columns.EFFECTIVE} AS withholds"""


def registered(seen: Row) -> dict[str, Registered]:
    """The tables by their names in the replication set; `seen` has COLUMNS."""
    return {kept["name"]: _registered(kept, withholds=seen["withholds"]) for kept in seen["registered"]}


def _registered(kept: Mapping[str, Any], *, withholds: bool) -> Registered:
    return Registered(
        kept["key"],
        kept["structure"],
        kept["triggers"],
        kept.get("columns"),
        kept.get("keeps_base", False),
        kept.get("tracking", {}),
        kept.get("private", {}) if withholds else {},
        kept.get("logged_since") is not None,
        kept.get("history_lost"),
    )


def statements(shadow: Shadow, manipulation: Manipulation) -> list[str]:
    """Remember a table, after what it was is no longer asked for."""
    mapping = manipulation.model_dump_json()
    return [
        f"""
INSERT INTO concord.replicated_table AS r
       (name, relation, shadow, key, structure, triggers, columns, mapping, keeps_base, tracking)
SELECT {literal(shadow.name)}, {literal(shadow.table.sql)}, {literal(shadow.relation)},
       {literal(json.dumps(list(shadow.key)))}::jsonb, {literal(shadow.structure)},
       {_actual_triggers(shadow)}, {literal(json.dumps(_columns(shadow)))}::jsonb, {literal(mapping)}::jsonb,
       {literal(shadow.keeps_base)},
       {literal(json.dumps(shadow.marks.remembered if shadow.marks else {}))}::jsonb
ON CONFLICT (name) DO UPDATE SET relation = excluded.relation, shadow = excluded.shadow, key = excluded.key,
       structure = excluded.structure, triggers = excluded.triggers, columns = excluded.columns,
       mapping = excluded.mapping, keeps_base = excluded.keeps_base, tracking = excluded.tracking
 WHERE (r.relation, r.shadow, r.key, r.structure, r.triggers, r.columns, r.mapping, r.keeps_base, r.tracking)
       IS DISTINCT FROM
       (excluded.relation, excluded.shadow, excluded.key, excluded.structure, excluded.triggers, excluded.columns,
        excluded.mapping, excluded.keeps_base, excluded.tracking)"""
    ]


def _columns(shadow: Shadow) -> dict[str, Any]:
    carried = {column.name for column in shadow.columns}
    return {
        column.name: {
            "type": column.type.sql,
            "descriptor": column.type.descriptor,
            "place": column.place,
            "listed": column.name in carried,
        }
        for column in shadow.table.columns
    }


def _actual_triggers(shadow: Shadow) -> str:
    return (
        f"coalesce((SELECT jsonb_object_agg(t.tgname, {TRIGGER_STATE}) FROM pg_trigger t"
        f" WHERE t.tgrelid = {literal(shadow.table.sql)}::regclass AND t.tgname LIKE 'zz\\_concord\\_%'), '{{}}')"
    )


def distrust(shadow: Shadow, manipulation: Manipulation) -> str:
    """The table loses its proven common history, and the next run asks for it to be initialized, where

    - triggers are not as they were registered: they may have missed changes, and mending them must not hide that;
    - a column is carried now that was there before and was not, or was dropped and added again. Nobody knows
      whether the sites agree in it;
    - the mapping is another one: what was proven equal may not be.
    """
    carried = ", ".join(f"({literal(column.name)}, {column.place})" for column in shadow.columns)
    return f"""
UPDATE concord.link_state SET initialized = initialized - {literal(shadow.name)}
 WHERE EXISTS (SELECT 1 FROM concord.replicated_table r WHERE r.name = {literal(shadow.name)} AND (
         r.triggers IS DISTINCT FROM {_actual_triggers(shadow)}
         OR r.mapping IS DISTINCT FROM {literal(manipulation.model_dump_json())}::jsonb AND r.mapping IS NOT NULL
         OR EXISTS (SELECT 1 FROM jsonb_each(r.columns) c JOIN (VALUES {carried}) n (name, place) ON n.name = c.key
                     WHERE NOT (c.value ->> 'listed')::boolean OR (c.value ->> 'place')::int <> n.place)))"""


def proven(connection: Connection) -> set[tuple[str, str]]:
    """The synchronizations that this site belongs to, each with every table of which the common history is proven."""
    found = rows(
        connection,
        "SELECT split_part(link, '/', 1), jsonb_object_keys(initialized) FROM concord.link_state"
        " WHERE strpos(link, '/') > 0",
    )
    return {(synchronization, table) for synchronization, table in found}


def problems(
    site: str, wanted: ReplicatedTable, table: Table | None, known: Registered | None
) -> Iterator[str]:
    """Parts of one table that are missing or altered since it was provisioned, each one line."""
    where = f"{site}: {wanted.at_site(site)}"
    if table is None:
        yield f"{where} is gone"
    elif known is None:
        yield f"{where} is not provisioned; run `provision`. If that refuses it, take it out of the configuration"
    else:
        shadow = Shadow.of(wanted, site, table)
        since = _since(shadow, known)
        if known.structure != shadow.structure or any(column.name in since for column in shadow.columns):
            said = "; ".join(since.values()) or "the configuration lists others"
            yield (
                f"{where} has other columns than when it was provisioned ({said}); make it alike at every site, or"
                " list the columns that are replicated, and run `provision`"
            )
        yield from mark_problems.tracked_otherwise(site, wanted, table, known.tracking)
        yield from (f"{where} {problem}" for problem in preflight.unlisted_problems(shadow))
        yield from (f"{where} {problem}" for problem in preflight.cast_problems(shadow.columns))
        if known.private != private_columns.private_at(wanted, site, shadow):
            yield f"{where}: other columns are private than when it was provisioned; run `provision`"
        yield from (
            f"{where} {problem}" for problem in preflight.policy_problems(shape_of(wanted, site, table))
        )
        if shadow.has_triggers == known.by_log:
            now, before = ("triggers", "the log") if known.by_log else ("the log", "triggers")
            if shadow.marks is None:
                yield f"{where}: its changes are found by {before} still, and not by {now}; run `provision`"
        if shadow.keeps_base and not known.keeps_base:
            yield f"{where} does not keep yet what its resolvers must know of a row's past; run `provision`"
        if dict(known.triggers) != table.triggers:
            yield (
                f"{where}: a capture trigger is missing, disabled or altered; changes may have been missed: run"
                " `provision`, then `initialize NAME` for each synchronization that carries the table"
            )


def _since(shadow: Shadow, known: Registered) -> dict[str, str]:
    """The change of each column: added, dropped, altered."""
    if known.columns is None:
        return {}
    before, now = known.columns, _columns(shadow)
    said = {}
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            said[name] = f"column {name} {before[name]['type']} was dropped"
        elif name not in before:
            said[name] = f"column {name} {now[name]['type']} was added"
        elif before[name]["descriptor"] != now[name]["descriptor"]:
            said[name] = f"column {name} {_became(before[name], now[name])}"
        elif before[name]["place"] != now[name]["place"]:
            said[name] = f"column {name} {now[name]['type']} was dropped and added again"
    return said


def _became(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if labels := differing_labels(before["descriptor"], "the old one", now["descriptor"], "the new one"):
        return f"{now['type']} has other labels: {labels}"
    if before["type"] != now["type"]:
        return f"was {before['type']} and is {now['type']}"
    return f"{now['type']} is made of another type"


def added(shadow: Shadow, known: Registered | None) -> set[str]:
    """The carried columns that the table did not have when it was provisioned."""
    if known is None or known.columns is None:
        return set()
    return {column.name for column in shadow.columns} - known.columns.keys()
