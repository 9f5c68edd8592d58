"""What the controller remembers, in SQLite and in PostgreSQL."""
