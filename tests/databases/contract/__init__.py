"""No test stands here: `tests/databases` holds every database to the contract."""
