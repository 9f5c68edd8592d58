"""One table of a replication is copied again, and the others go on."""
