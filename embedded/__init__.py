"""What a bare machine lacks: PostgreSQL servers and a Java runtime, both taken from wheels."""
