"""PostgreSQL's own log as a source of changes: publication, slot, stream, decoder."""
