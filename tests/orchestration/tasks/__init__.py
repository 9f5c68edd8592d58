"""The acts of a run's tasks: leases, refusals, collections, metrics, notices, secrets."""
