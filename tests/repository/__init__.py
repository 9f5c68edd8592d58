"""The controller's memory, in SQLite and in PostgreSQL."""
