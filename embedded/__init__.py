"""The parts that a bare machine lacks: PostgreSQL servers, taken from a wheel, and a Spark cluster."""
