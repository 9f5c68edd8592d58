"""The acts of a run's tasks: refusals, collections, metrics, notices, secrets."""
