"""One transmission, as far as neither Spark nor a database takes part. Whole ones stand in `tests/link`."""
