"""A policy that is not configured, given by name: what a person asks "what if" with."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from concord.configuration.configuration import Configuration
from concord.configuration.conflict import ConflictSettings
from concord.configuration.conflict_rules import conflict_findings, places
from concord.messages.errors import ParametersRefused
from concord.rules.kinds import named
from concord.rules.policy import Chains

#: These need the version that both came from, or somebody else's code.
_MAKING = ("average", "additive", "merge_columns", "custom")
#: And this, at which end of the link each row stood, which the ledger does not keep.
_STANDING = "publisher_rules"


def other_chains(
    configuration: Configuration, synchronization: str, table: str, names: Sequence[str]
) -> Chains:
    """The chain of these resolvers for one table, checked as the configuration's own. Raises ParametersRefused."""
    for name in names:
        if named(name)[0] in _MAKING:
            raise ParametersRefused(
                f"policy {name}: it makes new rows, which nobody can foretell from the ledger"
            )
    if _STANDING in names:
        raise ParametersRefused(
            f"policy {_STANDING}: the ledger does not say which row stood at the publisher"
        )
    try:
        settings = ConflictSettings(resolvers=tuple(names))
    except ValidationError as error:
        first = error.errors()[0]
        said = first["msg"].removeprefix("Value error, ")
        given = first["input"] if isinstance(first["input"], str) else ", ".join(names)
        raise ParametersRefused(f"policy {given}: {said}") from None
    wanted = configuration.replication_sets[configuration.synchronizations[synchronization].replication_set]
    entry = next(each for each in wanted.tables if str(each.table) == table)
    edges = configuration.shared_along(entry)
    for finding in conflict_findings((), settings, entry, edges, configuration.sites):
        raise ParametersRefused(f"policy for {table}: {finding.text}")
    priorities = {name: site.priority for name, site in configuration.sites.items()}
    return settings.policy(places(edges)).bound(priorities)
