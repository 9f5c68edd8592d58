"""What the tasks of a run do: leases, refusals, collections, metrics, notices, secrets."""
