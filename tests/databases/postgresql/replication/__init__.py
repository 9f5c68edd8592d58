"""No test stands here: a replication is tested as a whole, in `tests/transactional`."""
