"""Both ends of a replication, one step at a time. Whole replications are in `tests/transactional`."""
