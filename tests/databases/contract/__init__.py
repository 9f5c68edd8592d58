"""No test stands here: a contract does nothing. PostgreSQL's rooms are tested in `tests/databases/postgresql`."""
