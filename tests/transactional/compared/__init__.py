"""Two sites of a replication are compared while both work."""
