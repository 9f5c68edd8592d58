"""Errors to plant in what becomes of versions that were stamped in the future."""

from __future__ import annotations

from tests.mutants.planted import LINK, POSTGRESQL, Mutant

STAMPS = f"{LINK}/test_future_stamps.py"
RULE = "tests/core/test_restamp.py"

FUTURE_STAMPS = (
    Mutant(
        "a new stamp forgets what others have seen of its site",
        "plugins/concord/restamp.py",
        "clock.floor + 1, seen_of_here + 1, *(",
        "clock.floor + 1, *(",
        RULE,
    ),
    Mutant(
        "a new stamp claims to have seen what others hold now of an entry in the future",
        "plugins/concord/restamp.py",
        "    vector[clock.origin] = (at, 0)\n",
        "    vector |= {origin: elsewhere[origin] for origin in dropped if origin in elsewhere}\n"
        "    vector[clock.origin] = (at, 0)\n",
        RULE,
    ),
    Mutant(
        "the entry in the future stays beside the new stamp",
        "plugins/concord/restamp.py",
        "vector = {origin: entry for origin, entry in version.vector.items() if origin not in dropped}",
        "vector = dict(version.vector)",
        RULE,
    ),
    Mutant(
        "what another site has accepted is stamped anew",
        f"{POSTGRESQL}/restamping.py",
        "elif accepted(each.version, seen, self.clock):",
        "elif False:",
        f"{STAMPS} -k has_accepted",
    ),
    Mutant(
        "a row that is stamped anew is not sent again",
        f"{POSTGRESQL}/restamping.py",
        'f" position = pg_current_xact_id() FROM',
        'f" position = p.position FROM',
        f"{STAMPS} -k may_be_followed",
    ),
    Mutant(
        "what waited of the old version comes back when its time has come",
        f"{POSTGRESQL}/waiting.py",
        """AND w.version ->> 'origin' = {literal(source_origin)} AND {seen} < {dot}\"""",
        """AND false\"""",
        f"{STAMPS} -k withdraws",
    ),
    Mutant(
        "clocks that are apart are believed",
        f"{POSTGRESQL}/restamping.py",
        "    if abs(ours - theirs) > _us(skew):\n",
        "    if False:\n",
        f"{STAMPS} -k clocks_are_apart",
    ),
    Mutant(
        "a row from the future is tried in every run",
        f"{POSTGRESQL}/waiting.py",
        """ AND NOT {watch.ahead("(w.version ->> 'changed_at')::bigint", "p.vector", skew)}""",
        "",
        f"{STAMPS} -k quiescent",
    ),
    Mutant(
        "a decision takes a stamp from the future further",
        f"{POSTGRESQL}/decision.py",
        "        if future:\n",
        "        if False:\n",
        f"{STAMPS} -k points_to_restamp",
    ),
)
