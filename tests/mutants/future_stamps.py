"""Errors to plant in what becomes of versions that were stamped in the future."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

STAMPS = "tests/link/waiting/test_future_stamps.py"
RULE = "tests/versions/test_restamp.py"
TABLE = f"{POSTGRESQL}/upkeep/restamped_table.py"
LEASES = "tests/terminal/test_restamp.py"

FUTURE_STAMPS = (
    Mutant(
        "a new stamp forgets what others have seen of its site",
        "plugins/concord/versions/restamp.py",
        "next_stamp(unite(vector, seen_of_here), clock",
        "next_stamp(vector, clock",
        RULE,
    ),
    Mutant(
        "a new stamp claims to have seen what others hold now of an entry in the future",
        "plugins/concord/versions/restamp.py",
        "    vector[clock.origin] = (at, 0)\n",
        "    vector |= {origin: elsewhere[origin] for origin in dropped if origin in elsewhere}\n"
        "    vector[clock.origin] = (at, 0)\n",
        RULE,
    ),
    Mutant(
        "the entry in the future stays beside the new stamp",
        "plugins/concord/versions/restamp.py",
        "vector = {origin: entry for origin, entry in version.vector.items() if origin not in dropped}",
        "vector = dict(version.vector)",
        RULE,
    ),
    Mutant(
        "what another site has accepted is stamped anew",
        TABLE,
        "elif accepted(each.version, seen, self.clock):",
        "elif False:",
        f"{STAMPS} -k has_accepted",
    ),
    Mutant(
        "a row that is stamped anew is not sent again",
        TABLE,
        'f" position = pg_current_xact_id() FROM',
        'f" position = p.position FROM',
        f"{STAMPS} -k may_be_followed",
    ),
    Mutant(
        "what waited of the old version comes back when its time has come",
        f"{POSTGRESQL}/ledger/waiting.py",
        """AND w.version ->> 'origin' = {literal(source_origin)} AND NOT ({seen})\"""",
        """AND false\"""",
        f"{STAMPS} -k withdraws",
    ),
    Mutant(
        "clocks that are apart are believed",
        f"{POSTGRESQL}/upkeep/restamping.py",
        "    if apart > skew:\n",
        "    if False:\n",
        f"{STAMPS} -k clocks_are_apart",
    ),
    Mutant(
        "a restamp takes no epoch",
        f"{POSTGRESQL}/upkeep/restamping.py",
        "                _fence(here, opened, epochs)\n",
        "                pass\n",
        f"{STAMPS} -k commits_nothing_after_it",
    ),
    Mutant(
        "a restamp takes the epoch at its own site alone",
        f"{POSTGRESQL}/upkeep/restamping.py",
        "for end in (here.name, peer)}",
        "for end in (here.name,)}",
        f"{STAMPS} -k commits_nothing_after_it",
    ),
    Mutant(
        "a restamp writes although a newer run has taken over",
        f"{POSTGRESQL}/rows/link_state.py",
        "        if lost := sorted(set(epochs) - {name for (name,) in found}):\n",
        "        if lost := []:\n",
        f"{STAMPS} -k newer_run",
    ),
    Mutant(
        "a restamp that stopped inside its transaction keeps all runs away",
        f"{POSTGRESQL}/rows/link_state.py",
        "{literal(application_name(synchronization))}, {literal(RESTAMPING)}",
        "{literal(application_name(synchronization))}",
        f"{STAMPS} -k stopped_inside",
    ),
    Mutant(
        "a new stamp goes over what a user has edited since the look",
        TABLE,
        " AND p.vector = n.old",
        "",
        f"{STAMPS} -k user_edits",
    ),
    Mutant(
        "a new stamp is given out below the floor",
        TABLE,
        '" AND n.changed_at > (SELECT stamp_floor',
        '" AND n.changed_at > (SELECT 0 * stamp_floor',
        f"{STAMPS} -k below_a_floor",
    ),
    Mutant(
        "a site judges the future for all others",
        f"{POSTGRESQL}/upkeep/restamping.py",
        "min(at + _skew(each) for each, at in clocks.items())",
        "now + _skew(here)",
        f"{STAMPS} -k any_site_holds_back",
    ),
    Mutant(
        "a restamp reads all rows at once",
        TABLE,
        "cursor.fetchmany(BATCH)",
        "cursor.fetchall()",
        f"{STAMPS} -k batch_by_batch",
    ),
    Mutant(
        "a restamp takes no lease",
        "plugins/concord/terminal/restamp.py",
        "    with keeping.all_kept(repository(), names, owner) as epochs:\n        yield epochs\n",
        '    yield {name: int(pendulum.now("UTC").timestamp() * 1000) for name in names}\n',
        f"{LEASES} -k refused",
    ),
    Mutant(
        "leases stay held where one of several was refused",
        "plugins/concord/orchestration/leases/keeping.py",
        "            stack.callback(give_back, engine, name, owner)",
        "            pass",
        f"{LEASES} -k refused",
    ),
    Mutant(
        "a row from the future is tried in every run",
        f"{POSTGRESQL}/ledger/waiting.py",
        """ AND NOT {suspicious.ahead("(w.version ->> 'changed_at')::bigint", "p.vector", skew)}""",
        "",
        f"{STAMPS} -k quiescent",
    ),
    Mutant(
        "a decision takes a stamp from the future further",
        f"{POSTGRESQL}/upkeep/decide.py",
        "        if future:\n",
        "        if False:\n",
        f"{STAMPS} -k points_to_restamp",
    ),
)
