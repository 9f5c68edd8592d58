"""The rules of consumers: a publisher keeps a log for each under its name, as it does for a replication (S0-41)."""

from __future__ import annotations

from collections.abc import Iterator

from concord.configuration.finding import Finding
from concord.configuration.sections import Sections


def consumer_findings(sections: Sections) -> Iterator[Finding]:
    """Names that two have, and logs that go both ways."""
    known = {name: f"the replication {name}" for name in sections.replications}
    for name, replication in sections.replications.items():
        path = ("replications", name, "consumers")
        if replication.consumers and replication.both_ways:
            text = (
                f"consumers read what goes one way, and both sites write with updates: {replication.updates}"
            )
            yield Finding(path, text)
        for consumer in replication.consumers:
            if consumer in known:
                yield Finding(path, f"{known[consumer]} has the name {consumer} already; choose another one")
            known.setdefault(consumer, f"a consumer of {name}")
